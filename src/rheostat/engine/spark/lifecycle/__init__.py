"""The life of a query that Rheostat starts: restarts for another allocation, its checkpoint, its failures.

| file | what |
|---|---|
| `restart.py` | a query that Rheostat starts and restarts: stop, repartition, start, as before where that fails |
| `shape.py` | what an allocation means for a query |
| `watcher.py` | restarts a failed real-time query |
| `owner.py` | the driver that owns a checkpoint |
| `checkpoint.py` | a checkpoint: batches, state, repartition, its undoing after a kill |
| `files.py` | files on any store that Spark can use |
| `application.py` | the part of Spark that a pipeline uses |
| `downtime.py` | the expected downtime of a change |
"""
