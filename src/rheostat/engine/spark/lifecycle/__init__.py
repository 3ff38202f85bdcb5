"""The life of a query that Rheostat starts: restarts for another allocation, its checkpoint, its failures.

| file | what |
|---|---|
| `restart.py` | a query and what starts it: stop, repartition, start |
| `checkpoint.py` | a checkpoint: batches, state, repartition, repair after a kill |
| `owner.py` | which driver works on a checkpoint |
| `watcher.py` | starts a failed query again |
| `downtime.py` | how long a change stops the output |
"""
