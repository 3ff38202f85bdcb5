"""Soaks for `rheostat bench soak`: a job on real Spark for minutes or hours, with random changes and faults.

| file | what |
|---|---|
| `run.py` | one soak: faults, returns, the comparison at the end |
| `faults.py` | what goes wrong, in which order, from a seed |
| `supervisor.py` | the driver as a supervisor sees it: started, started again, its memory sampled |
| `memory.py` | resident memory, and its trend |
| `driver.py`, `restless.py` | inside the driver's process: its life, its policy |
| `microbatch.py`, `realtime.py` | the two jobs, and their results |
| `changes.py` | changes and restarts in the journal |
"""
