"""Forecasters: from past rates to quantiles of future rates. numpy in, numbers out.

| file | what |
|---|---|
| `registry.py`, `backtest.py` | forecasters by name; the back-test that selects one |
| `loads.py`, `series.py` | the past load, a fold over windows; a regular series from measurements |
| `last_value.py`, `trend.py`, `drift.py`, `autoregression.py`, `profile.py` | our own forecasters |
| `statistical.py` | Holt-Winters, CES and ARIMA from statsforecast |
"""
