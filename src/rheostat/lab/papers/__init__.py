"""The papers' comparisons, one package each: `rheostat reproduce` prints their numbers beside ours.

| file or folder | what |
|---|---|
| `suite.py`, `registry.py`, `campaign.py` | a suite: sizes, parts, tables, claims; suites by name; several at once |
| `table.py`, `interval.py` | cells with the paper's numbers; 95 % intervals over seeds |
| `claim.py`, `verdicts.py`, `recorded/*.json` | claims as data and their verdicts; stored verdicts, a file per size |
| `difference.py`, `result.py` | cells that differ from the paper's; a suite's result |
| `charts.py`, `page.py`, `summary.py` | figures; the page of a suite; the page of all |
| `play.py`, `tuning.py` | controllers over one fleet; tunings |
| `capacity.py`, `parallel.py`, `on_spark.py` | an allocation's capacity; parts on all cores; parts as a Spark job |
| `conttune/`, `dragster/`, `autrascale/`, `phoebe/`, `streambed/`, `grounds/` | one suite each |
"""
