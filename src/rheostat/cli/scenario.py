"""A chosen run, from its Config to its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rheostat.cli.display.output import write_text
from rheostat.cli.journals import new_journal

if TYPE_CHECKING:
    from rheostat.cli.display.progress import Progress
    from rheostat.cli.options import Chosen
    from rheostat.lab.experiment.simulated import Comparison


def run_policies(chosen: Chosen, seeds: Sequence[int], progress: Progress) -> Comparison:
    """Run all chosen policies; everything that can be wrong is found out before the first simulated second."""
    from rheostat.lab.experiment.described import policy_maker
    from rheostat.lab.experiment.simulated import compare

    makers = {label: policy_maker(*named) for label, named in chosen.policies.items()}
    scenario = chosen.config.scenario(seeds)
    if chosen.config.journal is None:
        return compare(scenario, makers, seeds, progress=progress)
    journal = new_journal(chosen.config.journal, scenario.plant.name)
    try:
        return compare(scenario, makers, seeds, journal=journal, progress=progress)
    finally:
        journal.close()


def write_page(comparison: Comparison, html_file: str | None) -> None:
    """Write the report page, where one is wanted."""
    if html_file is not None:
        from rheostat.lab.experiment.page import comparison_page

        write_text(html_file, comparison_page(comparison))
