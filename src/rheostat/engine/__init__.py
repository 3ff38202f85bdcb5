"""Running jobs behind the Engine port. `spark` and `simulated` never import each other; both import `batches`.

| folder | what |
|---|---|
| `batches/` | turns reports of batches and stages into windows (pure) |
| `spark/` | Spark Structured Streaming, micro-batch and real-time mode |
| `simulated/` | simulated jobs |
| `testbed/` | measures a job before it is deployed |
"""
