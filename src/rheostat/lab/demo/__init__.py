"""`rheostat demo`: a real query, scaled live on this machine.

| file | what |
|---|---|
| `microbatch.py` | YSB on an embedded cluster, an executor killed |
| `realtime.py` | WordCount between two topics of a broker of its own |
"""
