"""What a person sees of a command: tables, live displays, files.

| file | what |
|---|---|
| `output.py` | consoles, JSON and text files |
| `live.py` | what moves while long work runs |
| `tables.py`, `sparkline.py` | results as tables, a series as one line |
| `logs.py` | what is logged, to stderr |
"""
