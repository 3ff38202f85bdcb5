"""Learning that several policies share: numpy in, numbers out.

| file | what |
|---|---|
| `capacity.py`, `registry.py` | samples and curves over tasks; models by name |
| `linear.py`, `gp.py`, `loglog.py` | DS2's line, ContTune's Gaussian process, ours |
| `history.py`, `experience.py` | what operators, and whole allocations, were seen to do: folds |
| `joint.py` | a Gaussian process over whole allocations |
| `recovery.py`, `downtime.py` | recovery time; downtimes as they were observed |
| `profile.py`, `clusters.py` | Phoebe's profile, which planning makes and policies read; two groups of numbers |
"""
