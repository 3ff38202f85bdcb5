"""Spark Structured Streaming behind the Engine port: micro-batch queries, resized by adding and removing executors."""
