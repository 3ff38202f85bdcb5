"""Micro-batches, as in Spark.

| file | what |
|---|---|
| `discipline.py` | the parameters: trigger, partitions, costs |
| `job.py`, `executors.py` | one job from event to event; its executors |
| `replicas.py` | all replicas, second by second |
| `engine.py` | one replica behind the Engine port, by the functions of `engine/batches` |
| `scripted.py` | a run with scripted arrivals and sizes, without a controller |
"""
