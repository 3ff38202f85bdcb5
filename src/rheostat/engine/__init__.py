"""Engines: running jobs behind the Engine port."""
