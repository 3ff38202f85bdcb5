"""Conformance tests: one class per port. Subclass it, implement its `make_` method, and run pytest.

| file | what |
|---|---|
| `engine.py`, `policy.py`, `testbed.py`, `journal.py`, `forecaster.py` | the rules for every implementation of a port |
| `records.py`, `situations.py` | examples of every record; small situations for policies |
"""
