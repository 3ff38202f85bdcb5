"""The front door: what a user's program calls. It may import everything below it, and `cli`, `lab` and users import it.

| file | what |
|---|---|
| `autoscale.py` | `rheostat.autoscale`: checks, opens the engine and the journal, starts the controller |
| `start.py` | how a query that Rheostat starts begins: lease, checkpoint repair, last size |
| `scaler.py` | the handle of a running scaler |
| `checks.py` | what is refused, and what is warned of, before anything is touched |
| `metrics.py` | `rheostat.metrics`: windows of running queries for Prometheus |
| `exposition.py` | an observation as Prometheus metrics (pure) |
"""
