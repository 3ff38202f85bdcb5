"""The control loop. It thinks in `cycle.py`, which is pure, and acts in `controller.py`, which is not.

| file | what |
|---|---|
| `controller.py` | observes, journals, applies; the only file here with effects |
| `cycle.py` | from a window to records and an intent: inspect, settle, judge, decide |
| `guards.py`, `limits.py` | guards after a decision, and what they remember; limits before it |
| `recovery.py` | a recovery-time objective as a limit |
| `heartbeat.py` | a lease that stays ours, and until when it surely is |
| `trials.py` | trials on a testbed, beside the loop |
| `memory.py` | state and knowledge as folds over the journal |
| `replay.py` | the same thinking over a journal |
| `shadow.py` | what a dry run would have cost, against what really ran |
"""
