"""Fluid flow with back pressure, as in Flink.

| file | what |
|---|---|
| `back_pressure.py` | one second of flow |
| `replicas.py` | all replicas: capacity, latency, restarts, failures |
| `engine.py` | one replica behind the Engine port |
"""
