"""Micro-batches: their numbers, one job from event to event, all replicas, and what their engine shows."""
