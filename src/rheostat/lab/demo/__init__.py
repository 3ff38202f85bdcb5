"""The runs behind `rheostat demo`, one file per mode: a load, a failure, and what the scaler made of them."""
