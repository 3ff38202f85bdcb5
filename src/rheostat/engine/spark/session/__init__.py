"""A Spark session that can be resized, and what has to be there to start one.

| file | what |
|---|---|
| `session.py` | `rheostat.session` |
| `settings.py` | the settings that live resizing needs, each with its reason |
| `embedded.py` | around the start of an embedded cluster |
| `java.py`, `java_process.py` | which Java is used; a Java child that ends with this process |
| `log4j.py` | Spark without log lines |
"""
