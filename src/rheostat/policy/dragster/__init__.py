"""Dragster (ICPP 2022): online optimisation over the graph, with a budget.

| file | what |
|---|---|
| `policy.py` | the policy |
| `throughput.py`, `regression.py` | edge functions with their slopes; learned from windows |
| `tally.py`, `ucb.py` | means per size; extended GP-UCB |
| `budget.py` | fewer slots than wanted |
"""
