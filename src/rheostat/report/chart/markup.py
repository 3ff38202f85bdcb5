"""SVG text: elements with escaped attributes, and coordinates in few characters."""

from __future__ import annotations

import html
import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def escape(text: object) -> str:
    """Return text that is safe inside an element and inside a quoted attribute."""
    return html.escape(str(text), quote=True)


def element(tag: str, *inside: str, **attributes: object) -> str:
    """Return an element; `inside` is markup, attributes are escaped. `class_` and `data_x` become `class` and `data-x`.

    An attribute that is None is left out.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(short(value) if isinstance(value, float) else value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{written}/>"


def text(content: str, x: float, y: float, **attributes: object) -> str:
    """Return a text element at a place."""
    return element("text", escape(content), x=x, y=y, **attributes)


def short(value: float) -> str:
    """Write a coordinate to a hundredth."""
    rounded = round(value, 2)
    return f"{rounded:g}" if abs(rounded) < 1e4 else f"{rounded:.10g}"


def significant(value: float) -> str:
    """Write a value with four significant digits, as a script reads it back."""
    return f"{float(f'{value:.4g}'):.12g}"


def line_path(x: Floats, y: Floats, step: bool = False) -> str:
    """Return the path through the points: x to a hundredth, y to a tenth; a point that is not finite is a gap.

    Every point is either `M x y` after a gap, `l dx dy`, or on a step line `h dx v dy`: `chart.js` reads the points
    back from it. Differences are taken of rounded coordinates, so that rounding errors do not add up.
    """
    parts: list[str] = []
    finite = np.isfinite(x) & np.isfinite(y)
    across = np.where(finite, np.round(np.where(finite, x, 0.0) * 100), 0).astype(int).tolist()
    down = np.where(finite, np.round(np.where(finite, y, 0.0) * 10), 0).astype(int).tolist()
    before: tuple[int, int] | None = None
    for here, there, drawn in zip(across, down, finite.tolist(), strict=True):
        if not drawn:
            before = None
            continue
        if before is None:
            parts.append(f"M{_fixed(here, 100)} {_fixed(there, 10)}")
        else:
            dx, dy = _fixed(here - before[0], 100), _fixed(there - before[1], 10)
            parts.append(f"h{dx}v{dy}" if step else f"l{dx} {dy}")
        before = (here, there)
    return "".join(parts)


def _fixed(value: int, parts: int) -> str:
    written = f"{value / parts:.2f}".rstrip("0").rstrip(".") if value % parts else str(value // parts)
    return written.replace("0.", ".", 1) if written.startswith(("0.", "-0.")) else written


def text_width(content: str, size: float = 11.0) -> float:
    """Estimate the width of a text: an average character of a sans-serif font is 0.6 of its size wide."""
    return 0.6 * size * len(content)


def ellipsis(content: str, width: float, size: float = 11.0) -> str:
    """Cut a text that is wider than this."""
    most = max(math.floor(width / (0.6 * size)), 2)
    return content if len(content) <= most else content[: most - 1] + "…"
