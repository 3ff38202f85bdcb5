"""One experiment: a job under a load, sized in several ways, on simulated, micro-batch or real-time ground.

| file | what it holds |
|---|---|
| `trial.py`, `run.py` | what is run, and what it came to |
| `score.py`, `comparison.py` | a row per policy; `compare` on a `Ground` |
| `simulated.py`, `microbatch.py`, `realtime.py` | the three grounds |
| `microbatch_job.py`, `microbatch_run.py`, `realtime_run.py` | one run on Spark, in a process of its own |
| `by_second.py`, `outside.py` | a run from its batches, and a query from its checkpoint |
| `processes.py` | children that end with their parent; executors that are killed |
| `page.py`, `figures.py` | the page of a comparison |
| `config.py`, `described.py`, `clairvoyant.py` | the file of a simulated run, what it describes, the yardstick |

Imported by `lab/papers`, `lab/bench`, `lab/demo` and by commands.
"""
