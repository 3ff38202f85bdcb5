"""Comparisons, benches, reproductions of papers and the demo. Only their commands in `cli` import it, lazily.

| file or folder | what |
|---|---|
| `experiment/` | one Trial, Run, Score, Comparison and page for simulated, micro-batch and real-time runs |
| `papers/` | `rheostat reproduce`: the papers' numbers beside ours |
| `bench/` | `rheostat bench` |
| `demo/` | `rheostat demo` |
| `clusters/` | every Spark on every cluster manager |
| `jobs/`, `workload/` | the papers' simulated jobs; their pipelines in PySpark |
| `chaos/`, `freeze/`, `soak/` | the storms, suspended drivers and soaks of the benches of these names |
| `sight/` | what a scaler sees of a job on Spark, against the truth, for `bench sight` |
| `kills/` | kills over a repartition and its roll-back, for `bench rescale` |
| `testbeds.py` | testbeds by engine, for `plan` and `profile` |
| `query_checkpoint.py` | a query read from its checkpoint |
| `profiles.py` | profiles of forecasting policies, for all seeds at once |
| `drills.py` | workers lost on purpose, for `drill` |
| `data.py` | the folder of the papers' measured data |
"""
