"""ContTune (VLDB 2023): continuous tuning with few reconfigurations.

| file | what |
|---|---|
| `policy.py` | Big-small and conservative Bayesian optimisation |
| `view.py` | one operator as Algorithm 2 sees it |
| `ours.py` | what the paper does not have |
| `big_ds2.py` | Big, then DS2: the paper's ablation |
"""
