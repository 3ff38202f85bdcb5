"""The output of commands: tables, live displays, files.

| file | what |
|---|---|
| `output.py` | consoles, JSON and text files |
| `live.py` | progress while long work runs |
| `tables.py`, `sparkline.py` | results as tables, a series as one line |
| `grounds.py` | all policies on all grounds |
| `logs.py` | logging to stderr |
"""
