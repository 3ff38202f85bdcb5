"""A Spark session whose executors can be resized, and what it needs to start.

| file | what |
|---|---|
| `session.py` | `rheostat.session` |
| `settings.py` | settings that live resizing needs, each with its reason, for every master |
| `versions.py`, `verbs.py` | a Spark that is too old, jars of another Scala; what an account may not do on Kubernetes |
| `embedded.py` | the home and the addresses of an embedded cluster |
| `java.py`, `java_process.py` | the Java that Spark starts; a Java child process that ends with this process |
| `archive.py`, `archive_writer.py` | archives of Spark's classes, with which JVMs start in about half the time |
| `ivy.py` | sets of jars that PySpark does not ship, fetched once and pinned |
| `log4j.py` | settings that silence Spark's log |
"""
