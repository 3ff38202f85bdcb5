"""The papers' comparisons, one package each: `rheostat reproduce` prints their numbers beside ours.

| file or folder | what |
|---|---|
| `suite.py`, `registry.py` | a suite: sizes, parts, tables, conclusions, figures; suites by name |
| `table.py`, `conclusion.py`, `result.py` | cells with the paper's numbers; conclusions; a suite's result |
| `charts.py`, `page.py` | figures; the page |
| `play.py`, `tuning.py` | controllers over one fleet; tunings |
| `capacity.py`, `parallel.py` | the capacity of an allocation; parts on all cores |
| `conttune/`, `dragster/`, `autrascale/`, `phoebe/`, `streambed/` | one suite each |
"""
