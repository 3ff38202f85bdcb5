"""`rheostat demo`: a real query on this machine, scaled live.

| file | what |
|---|---|
| `microbatch.py` | YSB on an embedded cluster, with one executor killed |
| `realtime.py` | WordCount between two topics of its own broker |
"""
