"""The executors of one application: registered, requested, and the calls that add and remove them.

| file | what |
|---|---|
| `scheduler.py` | calls into Spark's scheduler |
| `pool.py` | `Executors.request(n)`: a total number of executors |
| `local.py` | Spark in one process, which cannot be resized |
| `slots.py` | the slots of an application: fixed, or those of its executors |
"""
