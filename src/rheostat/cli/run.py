"""`rheostat run`: start a pipeline under a scaler, and keep it at its size until a signal ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rheostat.api.scaler import Scaler
    from rheostat.config.run_file import RunFile

STOP_S = 20.0
"""Seconds to wait for the end of a batch after a signal: Kubernetes kills after 30 s."""
LOOK_S = 0.5
"""Seconds between two looks at the scaler."""
MAX_EXECUTORS = 4
"""The most executors where none are given: what an embedded cluster has room for."""


def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE.yaml|MODULE:FUNCTION",
            help="A file that describes the run, or what starts the query: a function or a rheostat.pipeline.",
        ),
    ],
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="micro-batch (default), or realtime: tasks of every stage.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An argument of the pipeline, several times.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark's master (default: a cluster on this machine).")
    ] = None,
    min_executors: Annotated[str | None, typer.Option(metavar="N", help="The fewest executors (default: 1).")] = None,
    max_executors: Annotated[str | None, typer.Option(metavar="N", help="The most executors (default: 4).")] = None,
    cores: Annotated[str | None, typer.Option(metavar="N", help="Cores of one executor (default: 1).")] = None,
    memory_mb: Annotated[str | None, typer.Option(metavar="MB", help="Memory of one executor (default: 512).")] = None,
    conf: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A Spark setting, several times.")] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The job's name in the journal (default: MODULE:FUNCTION).")
    ] = None,
    policy: options.Policy = None,
    headroom: options.Headroom = None,
    max_latency: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Largest latency (default: no objective).")
    ] = None,
    max_lag: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Largest age of a waiting record (default: no objective).")
    ] = None,
    max_recovery: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Longest recovery from a failure (default: no objective).")
    ] = None,
    interval: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Seconds between decisions (default: 10).")
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Seconds that a decision looks back (default: 30).")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any key of the file, as in guards.cooldown_down_s=600."),
    ] = None,
    journal: options.JournalUrl = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and journal, but change nothing.")] = False,
    seconds: Annotated[str | None, typer.Option(metavar="N", help="Stop after this many seconds.")] = None,
    html_file: options.HtmlFile = None,
    log_json: options.LogJson = False,
    verbose: options.Verbose = False,
) -> None:
    """Start a query of your own on Spark and scale it.

    The command line overrides the file. Ctrl-C or SIGTERM ends the query after a batch. With a journal the next run
    goes on at the last size. Under spark-submit its settings are used. Exits with 1 when the query fails.
    """
    import warnings
    from contextlib import suppress

    from rheostat.cli.display import logs
    from rheostat.cli.display.live import change_line, live_view
    from rheostat.cli.display.output import check_writable, console, write_text
    from rheostat.cli.user_function import import_function
    from rheostat.config.run_file import read_run
    from rheostat.errors import EngineError, RheostatWarning
    from rheostat.journal import open_journal
    from rheostat.policy.registry import resolve_policy

    logs.configure(verbose, log_json)
    check_writable(html=html_file)
    given = {
        "mode": mode,
        "master": master,
        "name": name,
        "policy": policy,
        "journal": journal,
        "dry_run": dry_run or None,
    }
    numbers = {
        "min_executors": min_executors,
        "max_executors": max_executors,
        "cores": cores,
        "memory_mb": memory_mb,
        "slo.headroom": headroom,
        "slo.max_latency_s": max_latency,
        "slo.max_lag_s": max_lag,
        "slo.max_recovery_s": max_recovery,
        "interval_s": interval,
        "window_s": window,
        "seconds": seconds,
    }
    file = read_run(target, _overrides(given, numbers, settings or [], option or [], conf or []))
    pipeline = _define(import_function(file.pipeline), file.pipeline_options)
    resolve_policy(file.policy)
    try:
        from py4j.protocol import Py4JError

        import rheostat.api.start  # noqa: F401 - a missing Spark is reported before anything starts
    except ImportError as error:
        raise EngineError(f"{error}: Spark is not installed; pip install 'rheostat[spark]'") from error
    out = console()
    # A journal in memory can still become a page at the end; one that cannot be opened is reported at once.
    book = open_journal(":memory:") if file.journal is None else file.journal
    if file.journal is not None:
        open_journal(file.journal).close()
    spark = _session(file)
    try:
        spark.sparkContext.setLogLevel("WARN" if verbose else "ERROR")
        with _stop_signals() as stopping, warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("default", RheostatWarning)
            scaler = _start(file, pipeline, book)
            for doubt in doubts:
                out.print(f"warning: {doubt.message}", markup=False, soft_wrap=True)
            try:
                with live_view(out, scaler.job, change_line, lasting=True) as show:
                    _watch(scaler, show, stopping, file.seconds)
                if not verbose:
                    # What Spark writes about a batch that is cut off looks worse than it is.
                    spark.sparkContext.setLogLevel("OFF")
                failed = _end(scaler)
            except (Py4JError, OSError) as error:
                # A signal for the whole group ends Spark's JVM too.
                failed = "" if stopping.is_set() else f"Spark is gone ({type(error).__name__})"
                scaler.stop()
        out.print(f"ended with {scaler.changes} changes", style="dim")
    finally:
        with suppress(Py4JError, OSError):
            spark.stop()
    if html_file is not None:
        from rheostat.report.journal_page import journal_page

        opened = open_journal(book) if isinstance(book, str) else book
        write_text(html_file, journal_page(opened, scaler.job))
        opened.close()
        out.print(f"report: {html_file}", soft_wrap=True)
    if failed:
        raise EngineError(failed)


def _overrides(
    given: dict[str, Any], numbers: dict[str, str | None], settings: list[str], option: list[str], conf: list[str]
) -> dict[str, Any]:
    """Return the keys of the file that the command line sets; a named option goes above `--set`."""
    from rheostat.config.reader import scalar
    from rheostat.config.run_file import parse_setting
    from rheostat.errors import InvalidValue

    overrides = dict(parse_setting(text, "--set") for text in settings)
    overrides |= {key: value for key, value in given.items() if value is not None}
    overrides |= {key: scalar(value) for key, value in numbers.items() if value is not None}
    nested: dict[str, dict[str, str]] = {}
    for flag, key, texts in (("--option", "pipeline_options", option), ("--conf", "conf", conf)):
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals:
                raise InvalidValue(f"{flag} {text!r}: write KEY=VALUE")
            nested.setdefault(key, {})[name] = value
    return overrides | nested


def _start(file: RunFile, pipeline: Any, book: Any) -> Scaler:
    from rheostat.api.options import Options
    from rheostat.api.start import start
    from rheostat.job.allocation import Allocation

    return start(
        pipeline,
        mode=file.mode,
        initial=Allocation(dict(file.initial)) if file.initial else None,
        min_executors=file.min_executors,
        max_executors=None if _in_one_process(file) else file.max_executors or MAX_EXECUTORS,
        slo=file.slo,
        policy=file.policy,
        journal=book,
        dry_run=file.dry_run,
        options=Options(
            name=file.name or file.pipeline,
            interval_s=file.interval_s,
            window_s=file.window_s,
            guards=file.guards,
            forecast=file.forecast,
            seed=file.seed,
            rename_state=file.rename_state,
            retention_s=file.retention_s,
        ),
    )


def _in_one_process(file: RunFile) -> bool:
    """Whether the master is one process, whose slots are fixed: real-time mode can still split them."""
    from rheostat.errors import InvalidValue

    if file.mode != "realtime" or file.master is None or not file.master.startswith("local["):
        return False
    if file.max_executors is not None:
        raise InvalidValue(f"max_executors is {file.max_executors}, and master {file.master!r} has no executors")
    return True


def _watch(scaler: Scaler, show: Any, stopping: Any, limit_s: float | None) -> None:
    """Show the steps until the query ends, a signal comes, or the time is over."""
    from time import monotonic

    begun_s, reported = monotonic(), False
    while True:
        gone_s = monotonic() - begun_s
        show(scaler.steps, gone_s)
        alive = scaler.holds or any(query.isActive for query in scaler.queries)
        if stopping.is_set() or not alive or (limit_s is not None and gone_s >= limit_s):
            return
        if scaler.status.startswith("failed") and not reported:
            # Without a scaler the query goes on as it is.
            typer.echo(f"the scaler {scaler.status}; the query goes on at its size", err=True)
            reported = True
        stopping.wait(LOOK_S)


def _end(scaler: Scaler) -> str:
    """Stop the scaler, then the query after a batch; return why the query failed, "" when it did not."""
    from rheostat.clock import WallClock
    from rheostat.engine.spark.lifecycle.restart import stop_after_batch

    scaler.stop()
    failed = scaler.query_failure
    for query in scaler.queries:
        if query.isActive:
            stop_after_batch(query, WallClock(), STOP_S)
    return failed or (f"the scaler {scaler.status}" if scaler.status.startswith("failed") else "")


def _session(file: RunFile) -> SparkSession:
    """Start a session with these settings; under spark-submit, with those that it was given."""
    import os

    from rheostat.engine.spark.session.session import session, start_session
    from rheostat.engine.spark.session.settings import ANYWHERE, NEEDED, RECOMMENDED
    from rheostat.errors import InvalidValue

    name = file.name or file.pipeline
    own = {"spark.ui.showConsoleProgress": "false", **file.conf}
    if file.mode == "realtime" and not any(key.startswith("spark.jars") for key in own):
        from rheostat.kafka.jars import connector_jars, is_cached

        # For development; a cluster has the connector of its own Spark version in spark.jars.packages.
        own |= {"spark.jars": ",".join(map(str, connector_jars()))} if is_cached() else {}
    if _in_one_process(file):
        return start_session({"spark.app.name": name, "spark.master": str(file.master), **own})
    sizes = {"cores": file.cores, "memory_mb": file.memory_mb}
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        given = {key: value for key, value in sizes.items() if value is not None}
        most = file.max_executors or MAX_EXECUTORS
        return session(
            name,
            file.master or "local-cluster",
            min_executors=file.min_executors,
            max_executors=most,
            conf=own,
            **given,
        )
    if twice := [key for key, value in {"master": file.master, **sizes}.items() if value is not None]:
        raise InvalidValue(f"{twice[0]} is set by spark-submit here: leave it out")
    from pyspark import SparkConf

    defaults = {key: value for key, (value, _) in {**RECOMMENDED, **ANYWHERE}.items()}
    defaults |= {setting.key: setting.value for setting in NEEDED if setting.value is not None}
    submitted = dict(SparkConf().getAll())
    return start_session({**{k: v for k, v in defaults.items() if k not in submitted}, **own})


def _define(target: Any, arguments: Any) -> Any:
    """Give a pipeline its arguments; a function that starts a query has none."""
    from rheostat.errors import InvalidValue

    define = getattr(target, "define", None)
    if define is not None:
        return define(**arguments)
    if arguments:
        raise InvalidValue(
            f"{', '.join(arguments)}: arguments are for a rheostat.pipeline; this function starts its query by itself"
        )
    return target


def _stop_signals() -> Any:
    """Return a context with an event that SIGINT and SIGTERM set; PySpark's own answer to SIGINT fails the query."""
    import signal
    import threading
    from contextlib import contextmanager

    @contextmanager
    def signals() -> Any:
        stopping = threading.Event()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            signal.signal(number, lambda *_: stopping.set())
        try:
            yield stopping
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    return signals()
