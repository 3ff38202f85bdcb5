"""One experiment for all grounds: a Trial is run, its Run is scored, Scores make a Comparison, a page shows it.

| file | what |
|---|---|
| `trial.py`, `run.py`, `score.py`, `comparison.py` | what is run, what happened, what it is worth, side by side |
| `failures.py` | a policy that raises: the end of a run, or a failed row |
| `page.py`, `figures.py` | the page and its pictures |
| `simulated.py` | the simulated ground: one fleet |
| `microbatch.py`, `microbatch_job.py`, `microbatch_run.py`, `by_second.py` | Spark micro-batch: jobs, a run, seconds |
| `realtime.py`, `realtime_run.py` | real-time mode on Spark: jobs, a run |
| `processes.py`, `query_checkpoint.py` | child processes that end with this one; a query seen through its checkpoint |
| `config.py`, `descriptions.py` | a run as a YAML file; jobs, loads and policies from text |
| `oracle.py` | the yardstick: knows every curve and the load to come |
"""
