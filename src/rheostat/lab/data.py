"""The folder of the papers' measured data."""

from __future__ import annotations

import os
from pathlib import Path

from rheostat.errors import InvalidValue


def data_folder() -> Path:
    """Return the folder with the papers' measured data: $RHEOSTAT_DATA, or `shared/data` beside the project."""
    named = os.environ.get("RHEOSTAT_DATA")
    places = [Path(named)] if named else [Path.cwd().parent, Path(__file__).resolve().parents[4]]
    for place in places:
        folder = place if named else place / "shared" / "data"
        if folder.is_dir():
            return folder
    where = f"$RHEOSTAT_DATA is {named!r}, which is not a folder" if named else "there is no ../shared/data"
    raise InvalidValue(f"no measured data of the papers: {where}; set $RHEOSTAT_DATA to their folder")


def missing_data() -> str:
    """Return why the papers' measured data are not on this machine; "" if they are."""
    try:
        data_folder()
    except InvalidValue as error:
        return str(error)
    return ""
