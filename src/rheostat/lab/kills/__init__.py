"""Kills over a repartition and over its undoing, for `rheostat bench rescale --only kills`.

| file | what |
|---|---|
| `run.py` | all kills, and the drivers that continue on what they leave |
| `moment.py` | when a driver is killed, drawn from a seed |
| `evidence.py` | what a kill has left in the checkpoint, and the stage that it hit |
| `watch.py` | the parent watches a checkpoint, and kills its driver |
| `driver.py` | the drivers, in their own processes |
| `job.py` | the counting query, its formats of state and its files |
| `source.py` | its input, which can be read again from any offset |
"""
