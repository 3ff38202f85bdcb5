"""What a scaler sees of a job on real Spark, against the truth, for `rheostat bench sight`.

| file | what |
|---|---|
| `run.py` | one run: the broker, the load, the job, and what they leave behind |
| `realtime.py` | one run in real-time mode |
| `scenario.py` | the loads |
| `job.py` | the job in its own process |
| `udf.py`, `work.py` | its pandas UDF; the work, which is a wait, and its account |
| `drops.py` | a load of files in a folder |
| `place.py` | the folder of a run, and what its files say |
| `truth.py` | what really happened: backlog, input rate and lag at any moment |
| `windows.py` | what the scaler saw and decided, from its journal |
| `comparison.py` | the one against the other |
| `cost.py` | the CPU time with a scaler over that without one |
"""
