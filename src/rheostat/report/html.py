"""From facts, tables and figures to one page that needs no network: the template engine around everything."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rheostat import __version__
from rheostat.report.drawing import Figure

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: its text, and how it looks."""

    text: str
    look: str = ""
    under: str = ""
    """A second, smaller line."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a sentence about it."""

    heads: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure with a sentence about it."""

    name: str
    figure: Figure
    note: str = ""

    @property
    def json(self) -> Markup:
        """The figure as JSON that cannot end the script element around it."""
        return _script_safe(self.figure)


@dataclass(frozen=True, slots=True)
class Fact:
    """A headline number."""

    value: str
    what: str
    note: str = ""


def render(template: str, **facts: Any) -> str:
    """Fill one of the templates; the page needs nothing from elsewhere."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=PackageLoader("rheostat.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    scripts = [get_plotlyjs(), environment.get_template("plots.js.j2").render()]
    # Only these two scripts may run, and nothing may be fetched, whatever else should get into the page.
    allowed = " ".join(_digest(script) for script in scripts)
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data: blob:"
    return environment.get_template(template).render(
        scripts=[Markup(script) for script in scripts],
        content_policy=f"{policy}; script-src {allowed}",
        version=__version__,
        **facts,
    )


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _script_safe(value: Any) -> Markup:
    from markupsafe import Markup

    # ASCII, and without the characters that HTML could read.
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
