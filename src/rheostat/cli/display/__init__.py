"""What commands show: `live.py` while something runs, `tables.py` and `sparkline.py` afterwards, `output.py` for files.

`logs.py` sets up what is logged. Imported only by commands.
"""
