"""Phoebe (ICWS 2022), TWRES, and `anticipate`, ours: policies that forecast the load.

| file | what |
|---|---|
| `policy.py`, `twres.py`, `anticipate.py` | the policies |
| `knowledge.py`, `forecasting.py` | their knowledge, a fold; what they share |
| `capacity.py`, `latency_surface.py`, `load_series.py` | T_max, latency, the past load |
| `outage.py`, `later_failures.py` | failures by source offsets; the capacity that a later failure needs |
"""
