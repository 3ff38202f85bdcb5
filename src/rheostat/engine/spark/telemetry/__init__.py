"""Reads progress, stages and offsets from a running Spark. It changes nothing there.

| file | what |
|---|---|
| `feed.py` | the listener: progress events |
| `queries.py` | batches, stages and windows of micro-batch queries |
| `stages.py`, `rows.py` | stages from the status store, finished and running; rows in small answers |
| `running.py`, `scans.py` | the running batch of a query; the rows that its scans have read |
| `admission.py` | whether a source took all of its backlog |
| `topic.py` | the end offsets of a Kafka topic |
| `probe.py` | `rheostat.operator`: probes around a named operator |
"""
