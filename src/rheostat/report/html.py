"""From facts, tables and figures to one page that needs no network: the template engine around everything."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rheostat import __version__
from rheostat.errors import RheostatError
from rheostat.report.chart.figure import Figure
from rheostat.report.chart.svg import render_svg, script, style

if TYPE_CHECKING:
    from jinja2 import Environment
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
    """A figure with a name of its own on the page, and a sentence about it."""

    name: str
    figure: Figure
    note: str = ""

    @property
    def svg(self) -> Markup:
        """The figure as markup, in which every text is escaped."""
        from markupsafe import Markup

        return Markup(render_svg(self.figure, self.name))


@dataclass(frozen=True, slots=True)
class Fact:
    """A headline number."""

    value: str
    what: str
    note: str = ""


def render(template: str, **facts: Any) -> str:
    """Fill one of the templates; the page needs nothing from elsewhere."""
    environment = _environment()
    from markupsafe import Markup

    # Only this script may run, and nothing may be fetched, whatever else should get into the page.
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data: blob:"
    return environment.get_template(template).render(
        script=Markup(script()),
        chart_style=Markup(style()),
        content_policy=f"{policy}; script-src 'sha256-{digest}'",
        version=__version__,
        **facts,
    )


def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise RheostatError(f"{error}: a page needs it; pip install 'rheostat[report]'") from error
    return Environment(
        loader=PackageLoader("rheostat.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
