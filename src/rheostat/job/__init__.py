"""The vocabulary: frozen, plain data that every layer uses. It does no I/O and imports no other layer.

| file | what |
|---|---|
| `graph.py` | operators, edges and demand; `JobSpec`: the engine's description of its job |
| `observation.py` | one window; the checks that mark it as absurd or incomplete |
| `allocation.py`, `fit.py` | tasks per operator; rounding them to bounds, quantum and slots |
| `decision.py` | decisions, expectations, trials, outcomes |
| `slo.py`, `guards.py` | objectives, bounds, budget, limits; settings of the guards |
| `record.py`, `forecast.py`, `plan.py` | the records of the journal; forecasts and plans as records |
| `frozen.py` | frozen mappings, number checks, exact JSON |
"""
