"""Phoebe's comparison (ICWS 2022, section IV): Table II, latencies, resource use and prediction errors."""
