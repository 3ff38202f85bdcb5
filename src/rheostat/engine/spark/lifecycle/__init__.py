"""The life of a query that Rheostat starts: restarts for another allocation, its checkpoint, its failures.

| file | what |
|---|---|
| `restart.py` | a query that Rheostat starts and restarts: stop, repartition, start |
| `checkpoint.py` | a checkpoint: batches, state, repartition, repair after a kill |
| `owner.py` | the driver that owns a checkpoint |
| `watcher.py` | restarts a failed query |
| `downtime.py` | the expected downtime of a change |
"""
