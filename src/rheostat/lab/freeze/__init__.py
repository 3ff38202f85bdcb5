"""Suspended drivers for `rheostat bench freeze`: two drivers, one checkpoint, real Spark in both modes.

| file | what |
|---|---|
| `round.py` | one round, and what is conclusive about it |
| `driver.py` | a driver in its own process, and its diary |
| `commits.py` | which driver committed which batch |
"""
