"""Forecasters: from the rates so far to quantiles of the rates to come. numpy in, numbers out.

| file | what |
|---|---|
| `registry.py`, `choose.py` | forecasters by name; the back-test that chooses one |
| `loads.py`, `series.py` | the load so far, a fold; a regular series from measurements |
| `last_value.py`, `trend.py`, `drift.py`, `autoregression.py`, `profile.py` | forecasters of our own |
| `statistical.py` | Holt-Winters, CES and ARIMA through statsforecast |
"""
