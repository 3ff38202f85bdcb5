"""What the comparisons on a real Spark share: promises from the command line, what is going on, where pages go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from rheostat.job.slo import Slo


def promised(usual: Slo, promises: Mapping[str, str | None]) -> Slo:
    """Return the usual promises with those that were given in their place."""
    from dataclasses import replace

    from rheostat.config import build
    from rheostat.config.reader import scalar
    from rheostat.job.slo import Slo

    given = {key: scalar(value) for key, value in promises.items() if value is not None}
    checked = build(Slo, given, "slo")
    return replace(usual, **{key: getattr(checked, key) for key in given})


@contextmanager
def telling(out: Console, job: str) -> Iterator[Callable[[str], None]]:
    """Say what is going on: in a line that changes on a terminal, line by line elsewhere."""
    with out.status(job) as status:

        def tell(what: str) -> None:
            status.update(what)
            if not out.is_terminal:
                out.print(what, style="dim", markup=False, soft_wrap=True)

        yield tell


def page_of(html_file: str, job: str, jobs: Sequence[str]) -> str:
    """Return where a job's page goes: where there are several jobs, each has its name in the file's."""
    path = Path(html_file)
    return str(path if len(jobs) == 1 else path.with_stem(f"{path.stem}-{job}"))
