"""The papers' pipelines in PySpark, with operators of a known capacity.

| file | what |
|---|---|
| `pipeline.py`, `catalog.py` | what pipelines have in common; pipelines by name |
| `nexmark.py`, `nexmark_events.py`, `wordcount.py`, `ysb.py`, `topspeed.py` | the pipelines |
| `realtime.py` | the same as stages on Kafka |
| `pacing.py` | operators that wait for the time they should take |
| `injection.py` | pipelines fed by a testbed |
"""
