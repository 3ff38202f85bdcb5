"""What reproduces and measures. Of the product only its own commands in `cli` import it, lazily.

| file or folder | what |
|---|---|
| `experiment/` | one Trial, Run, Score, Comparison and page for simulated, micro-batch and real-time runs |
| `papers/` | `rheostat reproduce`: the papers' tables beside ours |
| `bench/` | `rheostat bench` |
| `demo/` | `rheostat demo` |
| `jobs/`, `workload/` | the papers' simulated jobs; their pipelines in PySpark |
| `testbeds.py` | testbeds by engine, for `plan` and `profile` |
| `data.py` | where the papers' measured data are |
"""
