"""The entry point: which commands there are, and what becomes of errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from rheostat import __version__
from rheostat.cli.bench import bench
from rheostat.cli.catalog import grounds, jobs, loads, policies
from rheostat.cli.compare import compare
from rheostat.cli.demo import demo
from rheostat.cli.doctor import doctor
from rheostat.cli.kafka import kafka
from rheostat.cli.plan import plan
from rheostat.cli.profile import drill, profile
from rheostat.cli.replay import replay
from rheostat.cli.report import report
from rheostat.cli.reproduce import reproduce
from rheostat.cli.run import run as run_pipeline
from rheostat.cli.settings import settings
from rheostat.cli.simulate import simulate
from rheostat.errors import RheostatError

# Plain help: typer's rich help alone would take longer to import than everything else together.
app = typer.Typer(
    name="rheostat",
    help="Keeps a streaming job at the smallest size that still meets its objectives, and says why.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo,
    run_pipeline,
    plan,
    profile,
    drill,
    simulate,
    compare,
    reproduce,
    replay,
    report,
    bench,
    doctor,
    settings,
    jobs,
    policies,
    loads,
    grounds,
):
    app.command()(command)
app.add_typer(kafka, name="kafka")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rheostat {__version__}")
        raise typer.Exit


def _show_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        typer.echo(context.get_help())
        raise typer.Exit


# The root's help is an option of our own: typer's would load pydantic to coerce a None before any command's help.
@app.callback(add_help_option=False)
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
    help_: Annotated[
        bool, typer.Option("--help", "-h", help="Show this message.", callback=_show_help, is_eager=True)
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; what Rheostat raises on purpose becomes one sentence."""
    try:
        app(args=arguments, prog_name="rheostat")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except RheostatError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run())
