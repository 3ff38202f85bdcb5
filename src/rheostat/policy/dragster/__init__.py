"""Dragster (ICPP 2022): online optimisation over the graph, with a budget.

| file | what |
|---|---|
| `policy.py` | the policy, and the options that follow the paper to the letter |
| `targets.py` | multipliers, saddle point, gradient (Eq 14 to 16), and our proximal term |
| `throughput.py`, `regression.py` | throughput functions of edges and their slopes; their regression from windows |
| `tally.py`, `ucb.py` | mean capacities per size, and whether they still hold; extended GP-UCB |
| `budget.py` | the split of too few slots |
"""
