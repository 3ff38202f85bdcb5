"""Experiments on all grounds: a Trial is run, its Run is scored, Scores make a Comparison, a page shows it.

| file | what |
|---|---|
| `trial.py`, `run.py`, `score.py`, `comparison.py` | a trial, its measurements, its row, all rows |
| `failures.py` | a policy that raises: the end of a run, or a failed row |
| `page.py`, `figures.py` | the page and its figures |
| `simulated.py` | the simulated ground: one fleet |
| `microbatch.py`, `microbatch_job.py`, `microbatch_run.py`, `by_second.py` | micro-batches on Spark |
| `realtime.py`, `realtime_run.py` | real-time mode on Spark |
| `processes.py` | child processes that end with this one |
| `config.py`, `descriptions.py` | a run as a YAML file; jobs, loads and policies from text |
| `oracle/` | the one cost, its lower bound, and a schedule near it |
| `grounds.py` | named grounds: drift, hard cases, long traces |
"""
