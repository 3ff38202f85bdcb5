"""Where the papers' measured data are."""

from __future__ import annotations

import os
from pathlib import Path

from rheostat.errors import InvalidValue


def data_folder() -> Path:
    """Return the folder with the papers' measured data: $RHEOSTAT_DATA, or `shared/data` beside the project."""
    told = os.environ.get("RHEOSTAT_DATA")
    places = [Path(told)] if told else [Path.cwd().parent, Path(__file__).resolve().parents[4]]
    for place in places:
        folder = place if told else place / "shared" / "data"
        if folder.is_dir():
            return folder
    raise InvalidValue(
        "the papers' measured data are not here: this bench reads them in place from `../shared/data`, "
        "or from the folder that $RHEOSTAT_DATA names"
    )
