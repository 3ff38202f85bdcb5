"""How a series looks: its colour, dash, symbol and width, the same in every figure of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Colour = Literal[
    "blue", "vermilion", "green", "purple", "orange", "sky", "ink", "grey", "pale", "limit", "paper"
]  # fmt: skip
"""Names of the custom properties in `chart.css`, which has a light and a dark value for each."""
Dash = Literal["solid", "dash", "dot", "dashdot"]

COLOURS: tuple[Colour, ...] = ("blue", "vermilion", "green", "purple", "orange", "sky", "ink")
"""Okabe and Ito's palette without its yellow, which is hard to see on white."""
DASHES: tuple[Dash, ...] = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "pentagon", "star", "hexagon", "cross")


@dataclass(frozen=True, slots=True)
class Pen:
    """How one policy or operator looks, in every figure of a page."""

    colour: Colour
    dash: Dash = "solid"
    symbol: str = "circle"
    width: float = 1.8


SLO = Pen("limit", "dash", width=1.4)
"""The lines of the objectives."""


def pens(names: Sequence[str]) -> dict[str, Pen]:
    """Give every name a colour; past the last colour the line's pattern changes."""
    colours, dashes = len(COLOURS), len(DASHES)
    return {
        name: Pen(COLOURS[k % colours], DASHES[k // colours % dashes], SYMBOLS[k % len(SYMBOLS)])
        for k, name in enumerate(names)
    }
