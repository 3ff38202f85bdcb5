"""What works without the extras: a driver that only attaches, and one clear line where an extra is missing."""

from __future__ import annotations

import subprocess
import sys
from subprocess import CompletedProcess

import pytest

BLOCK = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Block())
"""
OPTIONAL = ("click", "jinja2", "markupsafe", "plotly", "rich", "structlog", "typer")


def run_without(blocked: tuple[str, ...], code: str) -> CompletedProcess[str]:
    """Run code in an interpreter in which these packages cannot be imported."""
    whole = BLOCK.format(blocked=blocked) + code
    return subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "code",
    [
        "import rheostat; [getattr(rheostat, name) for name in rheostat.__all__]",
        "import rheostat.api.autoscale, rheostat.api.metrics, rheostat.api.scaler, rheostat.control.controller",
        "import rheostat.engine.spark.microbatch, rheostat.engine.spark.realtime",
        "from rheostat.policy.registry import make_policy",
        "import rheostat.planner, rheostat.forecast.registry, rheostat.config, rheostat.control.replay",
        "import rheostat.report.journal_page, rheostat.report.plan_page",
        """
from rheostat.journal import open_journal
journal = open_journal("journal.db")
journal.release(journal.acquire("clicks", "test", 60.0))
journal.close()
""",
        """
import numpy as np
from rheostat.report.chart.figure import Axis, Figure, Line, Panel
from rheostat.report.chart.pens import Pen
from rheostat.report.chart.svg import render_svg
line = Line("load", np.arange(3.0), np.arange(3.0), Pen("blue"))
assert render_svg(Figure("A chart", Axis(), [Panel("y", 100, [line])]), "a").startswith("<svg")
""",
    ],
)
def test_a_driver_needs_no_extra(code: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))
    done = run_without(OPTIONAL, code)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_without_its_extra_is_one_line(missing: str) -> None:
    code = "sys.argv = ['rheostat', 'policies'];\nfrom rheostat.__main__ import main; main()"
    if missing == "rich":
        code = code.replace("'policies'", "'doctor'")
    done = run_without((missing,), code)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"error: the rheostat command needs {missing}: pip install 'rheostat[cli]'\n"


def test_a_page_without_its_extra_says_what_to_install() -> None:
    done = run_without(
        ("jinja2",),
        """
from rheostat.errors import RheostatError
from rheostat.report.html import render
try:
    render("plan.html.j2")
except RheostatError as error:
    print(error)
""",
    )
    assert done.stdout == "No module named 'jinja2': a page needs it; pip install 'rheostat[report]'\n", done.stderr


def test_an_error_in_the_command_itself_is_not_hidden() -> None:
    done = run_without(
        ("sqlalchemy",), "sys.argv = ['rheostat', 'replay', 'x.db'];\nfrom rheostat.__main__ import main; main()"
    )
    assert "pip install 'rheostat[cli]'" not in done.stderr
