"""Models that several policies share: numpy in, numbers out.

| file | what |
|---|---|
| `capacity.py`, `registry.py` | samples and curves over tasks; models by name |
| `linear.py`, `gp.py`, `loglog.py` | DS2's line, ContTune's Gaussian process, ours |
| `history.py`, `experience.py` | samples of single operators, and of whole allocations: folds over the journal |
| `joint.py` | a Gaussian process over whole allocations |
| `recovery.py`, `downtime.py` | recovery time; the distribution of observed downtimes |
| `profile.py`, `clusters.py` | Phoebe's profile, which planning measures and policies read; a split of numbers in two |
"""
