"""AuTraScale+ (TPDS 2024): throughput, then processing latency, then event-time latency.

| file | what |
|---|---|
| `policy.py` | the policy |
| `throughput.py`, `latency.py`, `eventtime.py` | the solvers TO, PLO and ELO |
| `stage.py` | what one step passes to the next, a part per solver |
| `space.py`, `box.py` | rows of tasks and trials; the search over allocations |
| `benefit.py` | scores, their transfer between rates, the probability that a target is met |
| `capacities.py` | what sizes can do now, by our capacity model |
| `decomposed.py`, `latency_model.py` | ours: PLO with a latency model that is a sum over operators |
"""
