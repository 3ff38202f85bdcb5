"""The methods of the comparison, each with the parameters of its own paper, under three ways to end a tuning."""

from __future__ import annotations

from functools import partial

from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.rate_models import DragsterPerRate
from rheostat.lab.papers.tuning import Method
from rheostat.policy.conttune.big_ds2 import BigDS2
from rheostat.policy.conttune.policy import ContTune
from rheostat.policy.dhalion import Dhalion
from rheostat.policy.dragster.policy import Dragster
from rheostat.policy.ds2 import DS2

AF_4, OURS, ONE_MODEL = "CBO (AF 4)", "ContTune, our model", "Dragster, one model"
DRAGSTERS = (paper.DRAGSTER, ONE_MODEL)
"""Dragster with a model per rate, as in ContTune's paper, and with one model for all, as in its own."""
BIG = ", Big"
"""Suffix of a ContTune that answers back pressure with Big; without it, ContTune knows the demand."""
STOPS = ("", " strict stop", " lenient stop")
"""Ends of a tuning. As in the paper: linear methods continue to a fixed point, fast exploitation stops without back
pressure. Strict: all continue to a fixed point. Lenient: all stop at the first window without back pressure."""


def _conttune(alpha: float, big: bool, strict: bool, ours: bool = False, cei: bool = False) -> ContTune:
    if ours:
        return ContTune(alpha=alpha, big=big, refine=strict, model="loglog")
    # As published, without our additions.
    return ContTune(alpha=alpha, big=big, refine=strict, bracket=False, acquisition="cei" if cei else "mean")


def methods() -> list[Method]:
    """Return every method with every end of a tuning; names end in `BIG` and the stop."""
    ds2, big_ds2 = partial(DS2, ignore_single_decrease=False), partial(BigDS2, ignore_single_decrease=False)
    all_methods = [
        Method(AF_4, partial(_conttune, 3.0, False, False, cei=True)),
        Method(paper.DRAGSTER, DragsterPerRate),
        Method(ONE_MODEL, Dragster),
    ]
    for stop in STOPS:
        strict, lenient = stop == STOPS[1], stop == STOPS[2]
        if not strict:  # these continue to a fixed point anyway
            all_methods += [
                Method(paper.DHALION + stop, Dhalion, lenient, symptoms=not lenient),
                Method(paper.DS2 + stop, ds2, lenient),
                Method(paper.BIG_DS2 + stop, big_ds2, lenient),
            ]
        for big in (False, True):
            all_methods += [
                Method(named(paper.ALPHA_0, stop, big), partial(_conttune, 0.0, big, strict), lenient),
                Method(named(paper.ALPHA_3, stop, big), partial(_conttune, 3.0, big, strict), lenient),
            ]
            if not (stop and big):
                ours = partial(_conttune, 3.0, big, strict, ours=True)
                all_methods.append(Method(named(OURS, stop, big), ours, lenient))
    return all_methods


def named(row: str, stop: str = "", big: bool = False) -> str:
    """Return the name of a row's runs."""
    if row in (paper.DHALION, paper.DS2, paper.BIG_DS2, *DRAGSTERS):
        return row + ("" if stop == STOPS[1] else stop)
    return row + (BIG if big else "") + stop


def ran(row: str, stop: str, big: bool) -> bool:
    """Return whether a row was run with this stop and Big."""
    return not (row in DRAGSTERS and stop) and not (row == OURS and stop and big)
