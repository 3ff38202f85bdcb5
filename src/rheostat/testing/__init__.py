"""Conformance tests: one class per port. An implementation subclasses it, says how it is made, and is tested.

| file | what |
|---|---|
| `engine.py`, `policy.py`, `testbed.py`, `journal.py`, `forecaster.py` | what every implementation of a port keeps to |
| `records.py`, `situations.py` | examples of every record; small situations for policies |
"""
