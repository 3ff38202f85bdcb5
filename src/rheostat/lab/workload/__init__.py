"""Workloads: load shapes, the papers' pipelines in PySpark, and an open-loop source to feed them."""
