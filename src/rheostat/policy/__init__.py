"""Policies: they decide. Pure: no I/O, no clock. Mathematics that only one policy needs is in its file or package.

| file or folder | what |
|---|---|
| `registry.py` | policies by name or file |
| `demand.py`, `tuning.py`, `catch_up.py`, `fit.py`, `explanation.py` | blocks that several policies share |
| `static.py`, `ds2.py`, `dhalion.py`, `hpa.py`, `drs.py`, `trigger_interval.py` | published policies, one file each |
| `max_tasks.py`, `proportion.py`, `exponent.py` | AuTraScale+'s baselines |
| `conttune/`, `dragster/`, `autrascale/`, `phoebe/` | the papers' policies with their mathematics |
"""
