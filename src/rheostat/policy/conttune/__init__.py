"""ContTune (VLDB 2023): continuous tuning with few reconfigurations.

| file | what |
|---|---|
| `policy.py` | Big-small and conservative Bayesian optimisation |
| `big_ds2.py` | Big, then DS2: the paper's ablation |
"""
