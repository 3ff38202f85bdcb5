"""Fluid flow: one second of back pressure, all replicas, and what their engine shows."""
