"""Configuration: plain values from a file or a command line become frozen dataclasses, or an error naming the key."""

from rheostat.config.build import build
from rheostat.config.named import parse_named
from rheostat.config.run import Config, load_config, make_config

__all__ = ["Config", "build", "load_config", "make_config", "parse_named"]
