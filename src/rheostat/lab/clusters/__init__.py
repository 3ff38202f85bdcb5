"""Real cluster managers on this machine, the Sparks that people have, and one job that is run on all of them.

| file | what |
|---|---|
| `sparks.py` | versions of PySpark, each installed once into the cache |
| `cluster.py` | what every cluster has: a master URL, settings, an end |
| `standalone.py` | Spark's own master and workers as processes |
| `yarn.py`, `yarn_pins.py` | Hadoop's MiniYARNCluster, from jars |
| `kubernetes/` | a real API server, etcd and scheduler, and a kubelet that runs pods as processes |
| `driver.py` | the job: a stateful query under a scaler that follows a file |
| `table_source.py`, `table_pins.py` | streams of real Delta and Iceberg tables |
| `stock.py`, `stock_udf.py` | a job as users have it: Kafka, JSON, a pandas UDF, windows |
| `visit.py` | grow, shrink, kill an executor, kill the driver: what a cluster does, and whether a row is lost |
"""
