"""Real-time mode, as in Spark.

| file | what |
|---|---|
| `discipline.py` | the parameters: length of a batch, downtimes |
| `job.py` | one job from event to event |
| `replicas.py` | all replicas, second by second |
| `engine.py` | one replica behind the Engine port, by the functions of `engine/batches` |
"""
