"""The `rheostat` command and `python -m rheostat`: the command line, or one line about the extra that it needs."""

from __future__ import annotations

import sys

NEEDED = ("typer", "rich", "click")
"""Packages of the extra `cli`."""


def main() -> None:
    """Run the command line of this process; without its packages, say how to install them and exit with 1."""
    try:
        from rheostat.cli.main import main as run

        run()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        sys.exit(f"error: the rheostat command needs {error.name}: pip install 'rheostat[cli]'")


if __name__ == "__main__":
    main()
