"""Rheostat keeps a streaming job at the smallest size that still meets its promises, and says why."""

__version__ = "0.1.0"
