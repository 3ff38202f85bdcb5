"""Capacity planning from a small testbed, before the first deployment (StreamBed, and our own way beside it)."""
