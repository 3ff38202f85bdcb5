"""The papers' comparisons, one package each: `rheostat reproduce` prints their tables beside ours.

| file or folder | what |
|---|---|
| `suite.py`, `registry.py` | what every suite is: sizes, parts, tables, conclusions, figures; suites by name |
| `table.py`, `conclusion.py`, `result.py` | cells with the paper's numbers; conclusions; what a suite comes to |
| `charts.py`, `page.py` | figures; the page |
| `play.py`, `tuning.py` | controllers over one fleet; tunings |
| `capacity.py`, `parallel.py` | what an allocation can serve; parts on all cores |
| `conttune/`, `dragster/`, `autrascale/`, `phoebe/`, `streambed/` | one suite each |
"""
