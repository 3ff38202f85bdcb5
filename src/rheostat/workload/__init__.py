"""Workloads: load shapes now, the papers' pipelines in PySpark with the Spark engine."""
