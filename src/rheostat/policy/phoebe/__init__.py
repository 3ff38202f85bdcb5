"""Phoebe (ICWS 2022), TWRES, and `anticipate`, ours: policies that look ahead.

| file | what |
|---|---|
| `policy.py`, `twres.py`, `anticipate.py` | the policies |
| `foresight.py`, `looking_ahead.py` | what they know, a fold; what they share |
| `capacity.py`, `latency_surface.py`, `load_series.py` | T_max, latency, the load so far |
| `outage.py`, `ahead.py` | failures as source offsets show them; what an objective takes if the job fails later |
"""
