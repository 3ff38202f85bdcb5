"""AuTraScale+ (TPDS 2024): throughput, then processing latency, then event-time latency.

| file | what |
|---|---|
| `policy.py` | the policy |
| `throughput.py`, `latency.py`, `eventtime.py` | the solvers TO, PLO and ELO |
| `space.py`, `box.py` | stages and trials; the search over allocations |
| `benefit.py` | scores and their transfer between rates |
| `latency_model.py` | our latency model, a sum over operators |
"""
