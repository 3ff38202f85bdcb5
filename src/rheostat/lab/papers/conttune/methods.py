"""The methods of the comparison, each with the parameters of its own paper, under three ways to end a tuning."""

from __future__ import annotations

from functools import partial

from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.rate_models import DragsterPerRate
from rheostat.lab.papers.tuning import Method
from rheostat.policy.conttune.big_ds2 import BigDS2
from rheostat.policy.conttune.policy import ContTune
from rheostat.policy.dhalion import Dhalion
from rheostat.policy.dragster.policy import TO_THE_LETTER, Dragster
from rheostat.policy.ds2 import DS2

AF_4, OURS, ONE_MODEL = "CBO (AF 4)", "ContTune, our model", "Dragster, one model"
DRAGSTER_LETTER = "Dragster, to the letter"
DRAGSTERS = (paper.DRAGSTER, DRAGSTER_LETTER, ONE_MODEL)
"""Dragster with a model per rate, as in ContTune's paper, and with one model for all, as in its own. Its equations to
the letter never settle (docs/dragster.md), so the row "Dragster" has our margin and shortfall, without catch-up."""
WAITING, LETTER = "Dhalion, waiting records alone", "Dhalion, to the letter"
"""Dhalion that takes an operator with an empty queue for idle, as in its paper, and without our bound on its growth.
The row "Dhalion" also wants spare useful time before it shrinks."""
ONE_STOP = (*DRAGSTERS, WAITING, LETTER, paper.DS2_RULE)
"""Rows that run with one end of a tuning only."""
BIG = ", Big"
"""Suffix of a ContTune that answers back pressure with Big; without it, ContTune knows the demand."""
STOPS = ("", " strict stop", " lenient stop")
"""Ends of a tuning. As in the paper: linear methods continue to a fixed point, fast exploitation stops without back
pressure. Strict: all continue to a fixed point. Lenient: all stop at the first window without back pressure."""


PLAIN_DRAGSTER = Dragster(multipliers="ignored")
EVERY_DS2 = partial(DS2, ignore_single_decrease=False)
"""DS2 that takes every suggestion."""
UNBOUNDED = 1e6
"""Growth in one step that no job reaches."""


def conttune(alpha: float, big: bool = False, strict: bool = False, ours: bool = False, cei: bool = False) -> ContTune:
    """Return ContTune as published, or with our model."""
    if ours:
        return ContTune(alpha=alpha, big=big, refine=strict, model="loglog")
    # Without our additions.
    return ContTune(alpha=alpha, big=big, refine=strict, bracket=False, acquisition="cei" if cei else "mean")


def methods(p_max: int | None = None) -> list[Method]:
    """Return every method with every end of a tuning; names end in `BIG` and the stop. `p_max` bounds Dragster."""
    all_methods = [
        Method(AF_4, partial(conttune, 3.0, False, False, cei=True)),
        Method(paper.DRAGSTER, partial(DragsterPerRate, own=PLAIN_DRAGSTER), most=p_max),
        Method(DRAGSTER_LETTER, partial(DragsterPerRate, own=Dragster(**TO_THE_LETTER)), most=p_max),
        Method(ONE_MODEL, lambda: PLAIN_DRAGSTER, most=p_max),
        Method(WAITING, partial(Dhalion, idle_below=None), symptoms=True),
        Method(LETTER, partial(Dhalion, idle_below=None, max_scale_up=UNBOUNDED), symptoms=True),
        Method(paper.DS2_RULE, DS2),
    ]
    for stop in STOPS:
        strict, lenient = stop == STOPS[1], stop == STOPS[2]
        if not strict:  # these continue to a fixed point anyway
            all_methods += [
                Method(paper.DHALION + stop, Dhalion, lenient, symptoms=not lenient),
                Method(paper.DS2 + stop, EVERY_DS2, lenient),
                Method(paper.BIG_DS2 + stop, partial(BigDS2, ignore_single_decrease=False), lenient),
            ]
        for big in (False, True):
            all_methods += [
                Method(named(paper.ALPHA_0, stop, big), partial(conttune, 0.0, big, strict), lenient),
                Method(named(paper.ALPHA_3, stop, big), partial(conttune, 3.0, big, strict), lenient),
            ]
            if not (stop and big):
                ours = partial(conttune, 3.0, big, strict, ours=True)
                all_methods.append(Method(named(OURS, stop, big), ours, lenient))
    return all_methods


def linear_methods() -> list[Method]:
    """Return both DS2s and ContTune, for other noise and curves."""
    return [
        Method(paper.DS2, EVERY_DS2),
        Method(paper.DS2_RULE, DS2),
        Method(paper.ALPHA_3, partial(conttune, 3.0, False, False)),
    ]


def named(row: str, stop: str = "", big: bool = False) -> str:
    """Return the name of a row's runs."""
    if row in (paper.DHALION, paper.DS2, paper.BIG_DS2, *ONE_STOP):
        return row + ("" if stop == STOPS[1] else stop)
    return row + (BIG if big else "") + stop


def ran(row: str, stop: str, big: bool) -> bool:
    """Return whether a row was run with this stop and Big."""
    return not (row in ONE_STOP and stop) and not (row == OURS and stop and big)
