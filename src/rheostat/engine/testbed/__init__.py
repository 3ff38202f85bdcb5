"""Measures a job before it is deployed: load shapes, an open-loop source, testbeds.

| file | what |
|---|---|
| `loads.py` | load shapes |
| `schedule.py` | a load as whole records per second |
| `source.py` | a Spark source that follows a schedule, exact to the row |
| `simulated.py`, `spark.py` | the simulator and Spark as testbeds |
"""
