"""What a Spark must be: new enough, and with jars of its own Scala."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rheostat.errors import InvalidValue

OLDEST = (3, 5)
"""The oldest Spark that is tested."""
_SCALA = re.compile(r"_(2\.\d+)[-:]")


def refuse_old(spark: str) -> None:
    """Refuse a version of Spark that is too old."""
    found = re.match(r"(\d+)\.(\d+)", spark)
    if found is not None and (int(found[1]), int(found[2])) < OLDEST:
        raise InvalidValue(
            f"Spark {spark} is too old: {'.'.join(map(str, OLDEST))} is the oldest that Rheostat is tested with"
        )


def refuse_other_scala(jars: Iterable[str], scala: str) -> None:
    """Refuse jars, by their names, that are built for another Scala than Spark's."""
    own = ".".join(scala.split(".")[:2])
    for jar in jars:
        if (built := _SCALA.search(jar)) is not None and built[1] != own:
            raise InvalidValue(
                f"{jar.strip()} is built for Scala {built[1]}, and this Spark for Scala {own}: take the one with _{own}"
            )
