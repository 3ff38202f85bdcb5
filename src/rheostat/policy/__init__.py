"""Decisions: one file per published policy, named after it, and the blocks they share. Pure, no I/O, no clock."""
