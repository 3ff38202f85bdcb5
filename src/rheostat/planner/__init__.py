"""Capacity planning from a small testbed, before the first deployment: StreamBed's way, and ours beside it.

| file | what |
|---|---|
| `plan.py`, `verify.py` | from measurements to a plan; whether it holds |
| `campaign.py`, `journaled.py` | measurements one after another; kept in the journal |
| `capacity_estimator.py`, `sequential_estimator.py`, `rig.py` | what an allocation sustains; how a testbed is asked |
| `resource_explorer.py`, `configuration_optimizer.py` | what is measured next; BIDS2 |
| `extrapolation.py`, `scaling.py`, `failures.py` | the paper's models of capacity, ours, and runs that failed |
| `profiling.py` | Phoebe's profiling as trials |
"""
