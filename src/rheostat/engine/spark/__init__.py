"""Spark Structured Streaming behind the Engine port.

| file or folder | what |
|---|---|
| `microbatch.py` | micro-batch queries of one application: executors come and go live |
| `realtime.py` | a real-time query: tasks of every stage, changed by a restart |
| `pipeline.py` | `rheostat.pipeline`: a query as named stages |
| `lifecycle/` | restarts, checkpoints, failures, who owns a checkpoint |
| `session/` | a Spark that can be resized: its settings, its Java, an embedded cluster |
| `executors/` | the executors of an application and its slots |
| `telemetry/` | what is read of a running Spark |
"""
