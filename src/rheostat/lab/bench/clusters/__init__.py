"""Benches on clusters of several kinds.

| file | what |
|---|---|
| `matrix.py` | `matrix`: every Spark on every cluster manager, and streams of tables |
| `shrink.py` | `resize`: shrinks by kill and by decommission |
"""
