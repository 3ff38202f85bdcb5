"""Storms for `rheostat bench chaos`: two drivers, one journal, one simulated job, and everything that can go wrong.

| file | what |
|---|---|
| `storm.py` | one storm from a seed |
| `driver.py` | a driver: its controller, clock, view of the job and connection to the journal |
| `faults.py` | what goes wrong, and when |
| `watch.py` | the invariants |
"""
