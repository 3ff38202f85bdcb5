"""Spark Structured Streaming behind the Engine port.

| file or folder | what |
|---|---|
| `microbatch.py` | micro-batch queries of one application, resized while they run |
| `realtime.py` | a real-time query: the tasks of every stage change by a restart |
| `pipeline.py` | `rheostat.pipeline`: a query as named stages |
| `lifecycle/` | restarts, checkpoints, failures, the owner of a checkpoint |
| `session/` | a Spark that can be resized: its settings, its Java, an embedded cluster |
| `executors/` | the executors of an application and its slots |
| `telemetry/` | progress, stages and offsets, read from a running Spark |
"""
