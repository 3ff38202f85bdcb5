"""What is read of a running Spark. Nothing here changes anything.

| file | what |
|---|---|
| `feed.py` | the listener: progress events |
| `queries.py` | batches, stages and state of micro-batch queries, and their windows |
| `stages.py` | finished stages from the status store |
| `admission.py` | whether a source took all there was |
| `topic.py` | how far a Kafka topic has come |
| `probe.py` | `rheostat.operator`: probes around a named operator |
"""
