"""The front door: what a user's program calls. It may import everything below it, and `cli`, `lab` and users import it.

| file | what |
|---|---|
| `autoscale.py` | `rheostat.autoscale`: a scaler for queries that run |
| `start.py` | `rheostat.start`: a scaler for a pipeline that Rheostat starts and restarts |
| `options.py` | `rheostat.Options`: the rare knobs of both |
| `launch.py` | what both have in common: policy, journal, controller, Scaler |
| `takeover.py` | how a pipeline begins: lease, checkpoint repair, last size |
| `scaler.py`, `summary.py` | the handle of a running scaler; how a terminal and a notebook show it |
| `checks.py` | what is refused, and what is warned of, before anything is touched |
| `metrics.py` | `rheostat.serve_metrics`: windows of running queries for Prometheus |
| `exposition.py` | an observation as Prometheus metrics (pure) |
"""
