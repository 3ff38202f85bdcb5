"""The executors of one application: what runs, what is wanted, and the calls that make it so.

| file | what |
|---|---|
| `scheduler.py` | the calls that Spark's scheduler takes |
| `pool.py` | executors as a level-triggered number: `want(n)` |
| `local.py` | Spark in one process, which cannot be resized |
| `slots.py` | the slots of an application, fixed or of executors |
"""
