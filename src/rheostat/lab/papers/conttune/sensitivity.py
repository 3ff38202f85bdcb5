"""What noise and curves do to Table 4a: both DS2s and ContTune without noise, with more, and fitted the other way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.runs import FITTED_WITH_RULE, Found
from rheostat.lab.papers.conttune.tables import by_query, per_tuning, saved_shares
from rheostat.lab.papers.table import Cell, Table

ROWS = (paper.DS2, paper.DS2_RULE, paper.ALPHA_3)
AGAINST = (paper.DS2, paper.DS2_RULE)


def named(variant: str) -> str:
    """Return the name of a variant's table."""
    return f"4a {variant}"


def sensitivity(found: Found) -> Iterator[Cell]:
    """Yield a table per variant, and what alpha=3 saves there against each DS2."""
    for variant, queries in found.variants.items():
        table, saving = Table(named(variant), "per tuning"), Table(f"{named(variant)}, saved", "%")
        means: dict[str, list[float]] = {}
        for row in ROWS:
            values = by_query(queries, per_tuning, row)
            means[row] = [float(mean) for mean in np.mean(list(values.values()), axis=0)]
            fitted = variant == FITTED_WITH_RULE and row == paper.DS2_RULE
            published = paper.RECONFIGURATIONS[paper.DS2 if row in AGAINST else row]
            for (query, each), theirs in zip(values.items(), published, strict=True):
                yield table.mean(row, query, each, theirs if fitted else None, fitted)
            yield table.mean(row, "mean", means[row], paper.MEANS[paper.DS2] if fitted else None, fitted)
        for linear in AGAINST:
            shares = saved_shares(means[paper.ALPHA_3], means[linear])
            yield saving.mean(paper.ALPHA_3, f"against {linear}", shares)
