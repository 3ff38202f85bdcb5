"""Configuration: plain values from a file or a command line become frozen dataclasses, or an error naming the key."""

from rheostat.config.build import build
from rheostat.config.named import parse_named

__all__ = ["build", "parse_named"]
