"""A Kafka to develop and to test against: broker, load in, results out. Of the product only `cli` imports it.

| file | what |
|---|---|
| `jars.py`, `broker.py` | the jars, fetched once; a broker that ends with its process |
| `client.py` | what a cluster is asked directly: topics, ends |
| `load.py` | an open-loop load into a topic |
| `output.py` | what came out of a topic, and when |
"""
