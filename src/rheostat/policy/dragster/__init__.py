"""Dragster (ICPP 2022): online optimisation over the graph, with a budget.

| file | what |
|---|---|
| `policy.py` | the policy |
| `throughput.py`, `regression.py` | throughput functions of edges and their slopes; their regression from windows |
| `tally.py`, `ucb.py` | mean capacities per size; extended GP-UCB |
| `budget.py` | the split of too few slots |
"""
