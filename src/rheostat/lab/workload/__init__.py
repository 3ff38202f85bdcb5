"""The papers' pipelines in PySpark, with operators of a known capacity.

| file | what |
|---|---|
| `pipeline.py`, `catalog.py` | a pipeline and its steps; pipelines by name |
| `nexmark.py`, `nexmark_events.py`, `wordcount.py`, `ysb.py`, `topspeed.py` | the pipelines |
| `realtime.py` | the pipelines as stages between Kafka topics |
| `counting.py` | a real-time pipeline that counts by key, and the counts that it owes |
| `pacing.py` | operators that wait instead of working |
| `injection.py` | pipelines on a testbed |
"""
