"""What DESIGN promises, measured: `registry.py` names the benches and their parts, `measure.py` is what they return.

Every other file is one bench or one part of it: a function of (quick, progress) that returns measures. Imported only by
`rheostat bench`.
"""
