"""Running jobs behind the Engine port. `spark` and `simulated` do not know each other; both stand on `batches`.

| folder | what |
|---|---|
| `batches/` | from reports of batches and stages to windows (pure) |
| `spark/` | Spark Structured Streaming, micro-batch and real-time mode |
| `simulated/` | simulated jobs |
| `testbed/` | what measures a job before it is deployed |
"""
