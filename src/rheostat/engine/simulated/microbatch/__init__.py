"""Micro-batches, as Spark has them.

| file | what |
|---|---|
| `discipline.py` | the numbers: trigger, partitions, costs |
| `job.py`, `executors.py` | one job from event to event; its executors |
| `replicas.py` | all replicas, second by second |
| `engine.py` | what its engine shows, by `engine/batches` |
| `scripted.py` | a run by script |
"""
