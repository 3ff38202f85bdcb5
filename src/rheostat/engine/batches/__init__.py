"""From reports of batches and stages to observations, for both Spark modes and both simulated ones. Pure.

It imports the vocabulary and nothing else.

| file | what |
|---|---|
| `progress.py`, `stage.py`, `probe.py` | a finished batch, a stage, a probe: as Spark reports them |
| `offsets.py` | from a source's offset to a count of records |
| `selection.py` | which batches a window covers |
| `window.py` | a micro-batch query's part of a window |
| `batch_time.py` | how long batches take, fitted; the slots that there were |
| `bottleneck.py` | what slows batches down and more executors do not cure |
| `realtime_window.py`, `lateness.py` | a window of real-time mode; which stage makes a batch late |
| `observation.py` | the observation that the controller gets |
"""
