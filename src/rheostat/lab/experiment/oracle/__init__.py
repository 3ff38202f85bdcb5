"""The one cost of comparisons, its lower bound for the known load, curves, noise and downtimes, a schedule near it.

| file | what |
|---|---|
| `cost.py`, `sizes.py` | the cost and its weights; the smallest allocation for a load |
| `course.py` | what a seed makes of a trial: work, capacities, downtimes, failures |
| `server.py` | one operator: sizes, capacities, and the backlog that the SLO allows |
| `search.py` | dynamic programming where a change stops the output |
| `live.py` | the same where sizes change freely |
| `bound.py` | the bound of a trial |
| `schedule.py` | a schedule that can be played, and the policy that plays it |
"""
