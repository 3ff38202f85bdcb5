"""A Kafka broker for development and tests, a load into it and results out of it. Only `cli` and `lab` import it.

| file | what |
|---|---|
| `jars.py`, `pins.py`, `broker.py` | the jars and their hashes; a broker that ends with its process |
| `client.py` | clients of a cluster: topics, partitions, end offsets |
| `load.py` | an open-loop load into a topic |
| `output.py` | the records of an output topic, with their times |
"""
