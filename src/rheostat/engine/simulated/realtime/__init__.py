"""Real-time mode, as Spark has it.

| file | what |
|---|---|
| `discipline.py` | the numbers: batch interval, downtimes |
| `job.py` | one job from event to event |
| `replicas.py` | all replicas, second by second |
| `engine.py` | what its engine shows, by `engine/batches` |
"""
