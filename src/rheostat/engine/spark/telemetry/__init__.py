"""Reads progress, stages and offsets from a running Spark. It changes nothing there.

| file | what |
|---|---|
| `feed.py` | the listener: progress events |
| `queries.py` | batches, stages and windows of micro-batch queries |
| `stages.py` | finished stages from the status store |
| `admission.py` | whether a source took all of its backlog |
| `topic.py` | the end offsets of a Kafka topic |
| `probe.py` | `rheostat.operator`: probes around a named operator |
"""
