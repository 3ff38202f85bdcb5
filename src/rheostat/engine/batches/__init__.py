"""Turns reports of batches and stages into observations, for both Spark modes and both simulated ones. Pure.

It imports the vocabulary of `rheostat.job` and nothing else.

| file | what |
|---|---|
| `progress.py`, `stage.py`, `probe.py` | a finished batch, a stage, a probe, as Spark reports them |
| `offsets.py`, `tables.py` | the number of records before a source's offset; of tables with versions |
| `present.py`, `scan.py` | the ends of the sources and the running batch, at one moment; SQL executions of a batch |
| `work.py` | how far the running batch has come |
| `arrivals.py` | counts of a source over time: the present rate, the age of a record |
| `selection.py` | the batches that a window covers |
| `window.py` | a micro-batch query's part of a window |
| `live.py` | the same with what the sources and the running batch show now |
| `batch_time.py` | a fitted line for the batch time; the history of the slots |
| `bottleneck.py` | causes of slow batches that more executors do not cure |
| `realtime_window.py`, `flow.py` | a window of real-time mode; the rows of its stages |
| `lateness.py` | the stage that makes a batch of real-time mode late |
| `observation.py` | the observation that the controller gets |
"""
