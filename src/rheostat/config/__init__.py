"""Plain values from a file or a command line become frozen dataclasses, or an error that names the key.

| file | what |
|---|---|
| `build.py` | dataclasses from plain values |
| `named.py` | `name:key=value`, the short form of a policy or a load |
| `reader.py` | YAML as this project reads it |
| `run_file.py` | what `rheostat run` reads |
"""

from rheostat.config.build import build
from rheostat.config.named import parse_named

__all__ = ["build", "parse_named"]
