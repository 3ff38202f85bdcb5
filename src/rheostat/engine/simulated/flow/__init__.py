"""Fluid flow with back pressure, as Flink has it.

| file | what |
|---|---|
| `back_pressure.py` | one second of flow |
| `replicas.py` | all replicas: capacity, latency, restarts, failures |
| `engine.py` | what its engine shows |
"""
