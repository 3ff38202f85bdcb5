"""Reads progress, stages and offsets from a running Spark. It changes nothing there.

| file | what |
|---|---|
| `feed.py` | the listener: progress events |
| `queries.py` | batches, stages and windows of micro-batch queries |
| `stages.py`, `rows.py` | stages from the status store, finished and running; rows in small answers |
| `live.py` | one query now: what its sources say, how far its running batch is |
| `running.py`, `scans.py` | the running batch of a query; the rows that its scans have read |
| `staged.py`, `flow.py` | batches, stages and windows of a real-time query; the rows of every stage |
| `admission.py` | whether a source took all of its backlog |
| `ends.py`, `readers.py` | the ends of a running query's sources, whatever batch runs; a reader per kind of source |
| `topic.py` | the end offsets of Kafka topics |
| `folder.py` | the files that wait for a file source |
| `tables.py` | the newest versions of Delta and Iceberg tables |
| `reflect.py` | private parts of a running source |
| `probe.py` | `rheostat.operator`: probes around a named operator |
"""
