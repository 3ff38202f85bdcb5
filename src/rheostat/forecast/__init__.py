"""Forecasters: from the rates so far to quantiles of the rates to come."""
