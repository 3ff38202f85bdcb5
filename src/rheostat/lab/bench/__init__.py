"""Benches, which print and never assert. Each returns `Measure`s under stable names.

| file | what |
|---|---|
| `registry.py`, `measure.py` | benches and their parts by name; a measured number |
| `chaos.py` | `chaos`: storms on the simulator |
| `speed.py` | `simulator`, `decision` |
| `fidelity.py`, `spark_fidelity.py`, `realtime_fidelity.py` | `fidelity`: the simulator against recordings and Spark |
| `overhead.py`, `probes.py` | `overhead` and `resize`; `probes` |
| `clusters/` | `matrix`, and shrinks by kill and by decommission |
| `rescale.py` | `rescale`: changes in real-time mode; kills over a repartition and its roll-back |
| `soak.py` | `soak`: random sizes, kills and stops on Spark for an hour, in both modes |
| `freeze.py` | `freeze`: suspended drivers on one checkpoint |
| `sight.py` | `sight`: what a scaler sees of a job on Spark, against the truth |
| `recovery.py`, `spark_recovery.py` | `recovery` |
| `forecast.py`, `models.py`, `planner.py` | forecasters, capacity models, plans |
| `bids2.py` | BIDS2 against HiGHS |
"""
