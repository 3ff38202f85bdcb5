"""The vocabulary: frozen, plain data that every layer speaks. It does no I/O and knows no other layer.

| file | what |
|---|---|
| `graph.py` | operators, edges, demand; `JobSpec`: what an engine says about its job |
| `observation.py` | one window, and what makes it absurd or incomplete |
| `allocation.py`, `fit.py` | tasks per operator; making numbers fit bounds, quantum and slots |
| `decision.py` | decisions, expectations, trials, outcomes |
| `slo.py`, `guards.py` | objectives, bounds, budget, limits; settings of the guards |
| `record.py`, `forecast.py`, `plan.py` | what the journal holds; forecasts and plans as records |
| `frozen.py` | frozen mappings, number checks, exact JSON |
"""
