"""Capacity planning on a small testbed before the first deployment: StreamBed's method, and ours beside it.

| file | what |
|---|---|
| `plan.py`, `streambed.py`, `verification.py` | plans by our model and by the paper's; the test whether a plan holds |
| `campaign.py`, `notebook.py` | a sequence of measurements; their records in the journal |
| `capacity_estimator.py`, `sequential_estimator.py`, `rig.py` | an allocation's sustainable rate; runs on a testbed |
| `resource_explorer.py`, `configuration_optimizer.py` | the next budget to measure; BIDS2 |
| `extrapolation.py`, `scaling.py`, `failures.py` | the paper's capacity models, ours, and failed runs |
| `memory.py`, `evidence.py` | memory profiles as regimes; what measured sizes say about a plan |
| `profiling.py` | Phoebe's profiling as trials |
"""
