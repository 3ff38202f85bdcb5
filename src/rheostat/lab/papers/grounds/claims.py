"""Goals of ours: on every ground a policy of ours costs no more than any published one."""

from __future__ import annotations

from collections.abc import Iterator

from rheostat.lab.experiment.grounds import GROUNDS, OURS, PUBLISHED
from rheostat.lab.papers.claim import Claim, ratio
from rheostat.lab.papers.grounds.tables import COST


def _claims() -> Iterator[Claim]:
    for ours in OURS:
        for ground in GROUNDS:
            parts = tuple(ratio((COST, ours, ground), (COST, policy, ground), "at most", 1.0) for policy in PUBLISHED)
            sentence = f"{ours} costs no more than any published policy on {ground}"
            # The data of the traces may be missing.
            yield Claim(COST, sentence, parts, goal=True, optional=bool(GROUNDS[ground].trace))


CLAIMS = tuple(_claims())
