"""`rheostat run`: start a query of your own under a scaler, and keep it at its size until it is told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rheostat.api.scaler import Scaler
    from rheostat.job.slo import SLO
    from rheostat.ports import Policy

STOP_S = 20.0
"""How long the end of a batch is waited for when the query is told to stop: Kubernetes kills after 30 s."""
LOOK_S = 0.5
MODES = ("micro-batch", "realtime")


def run(
    function: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="What builds and starts the query for an allocation, or a rheostat.pipeline.",
        ),
    ],
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="micro-batch, or realtime: tasks of every stage of a pipeline.")
    ] = "micro-batch",
    option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the pipeline, several times.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark master (default: a cluster on this machine).")
    ] = None,
    executors: Annotated[str, typer.Option(metavar="MIN:MAX", help="The fewest and the most executors.")] = "1:4",
    cores: Annotated[str | None, typer.Option(metavar="N", help="Cores of one executor (default: 1).")] = None,
    memory_mb: Annotated[str | None, typer.Option(metavar="MB", help="Memory of one executor (default: 512).")] = None,
    conf: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A Spark setting, several times.")] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The job's name in the journal (default: MODULE:FUNCTION).")
    ] = None,
    policy: options.Policy = None,
    headroom: options.Headroom = None,
    max_latency: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Largest latency (default: none is promised).")
    ] = None,
    interval: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Seconds between decisions (default: 10).")
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Seconds that a decision looks back (default: 30).")
    ] = None,
    journal: options.JournalUrl = None,
    shadow: Annotated[bool, typer.Option("--shadow", help="Decide and say so, but change nothing.")] = False,
    seconds: Annotated[str | None, typer.Option(metavar="N", help="Stop by itself after so long.")] = None,
    html_file: options.HtmlFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Start a query of your own on Spark and scale it.

    Ctrl-C or SIGTERM ends it after a batch. With a journal the next run goes on where this one stopped. Under
    spark-submit its settings are used. Exits with 1 when the query fails.
    """
    import warnings
    from contextlib import suppress

    from rheostat.cli.display import logs
    from rheostat.cli.display.live import change_line, live_view
    from rheostat.cli.display.output import check_writable, console, write_text
    from rheostat.cli.user_function import imported
    from rheostat.errors import EngineError, InvalidValue, RheostatWarning, nearest
    from rheostat.journal import open_journal

    logs.configure(verbose)
    check_writable(html=html_file)
    if mode not in MODES:
        raise InvalidValue(f"--mode is {mode!r}, {nearest(mode, MODES)}")
    start = _defined(imported(function), option or [])
    chosen, slo = _policy_and_slo(policy, headroom, max_latency)
    bounds = _bounds(executors)
    in_one = mode == "realtime" and master is not None and master.startswith("local[")
    interval_s, window_s = _number("--interval", interval, 10.0), _number("--window", window, 30.0)
    limit_s = None if seconds is None else _number("--seconds", seconds, 0.0)
    try:
        from py4j.protocol import Py4JError

        from rheostat.api.autoscale import autoscale
    except ImportError as error:
        raise EngineError(f"{error}: Spark is not installed; pip install 'rheostat[spark]'") from error
    out = console()
    # A journal that keeps nothing can still be made into a page at the end; one that cannot be opened is told at once.
    book = open_journal(":memory:") if journal is None else journal
    if journal is not None:
        open_journal(journal).close()
    spark = _session(name or function, master, bounds, cores, memory_mb, conf or [], mode)
    try:
        spark.sparkContext.setLogLevel("WARN" if verbose else "ERROR")
        with _told_to_stop() as stopping, warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("default", RheostatWarning)
            scaler = autoscale(
                start,
                name=name or function,
                slo=slo,
                executors=None if in_one else bounds,
                mode=mode,  # type: ignore[arg-type]
                policy=chosen,
                journal=book,
                apply=not shadow,
                interval_s=interval_s,
                window_s=window_s,
            )
            for doubt in doubts:
                out.print(f"warning: {doubt.message}", markup=False, soft_wrap=True)
            try:
                with live_view(out, scaler.job, change_line, lasting=True) as show:
                    _watch(scaler, show, stopping, limit_s)
                if not verbose:
                    # What Spark writes about a batch that is cut off looks worse than it is.
                    spark.sparkContext.setLogLevel("OFF")
                failed = _end(scaler)
            except (Py4JError, OSError) as error:
                # A signal for the whole group ends Spark's JVM too.
                failed = "" if stopping.is_set() else f"Spark is gone ({type(error).__name__})"
                scaler.stop()
        changes = sum(step.intent is not None for step in scaler.steps)
        out.print(f"ended with {changes} changes", style="dim")
    finally:
        with suppress(Py4JError, OSError):
            spark.stop()
    if html_file is not None:
        from rheostat.report.journal_page import journal_page

        opened = open_journal(book) if isinstance(book, str) else book
        write_text(html_file, journal_page(opened, scaler.job))
        opened.close()
        out.print(f"the whole story: {html_file}", soft_wrap=True)
    if failed:
        raise EngineError(failed)


def _watch(scaler: Scaler, show: Any, stopping: Any, limit_s: float | None) -> None:
    """Show what happens until the query ends, or is to end."""
    from time import monotonic

    begun_s, told = monotonic(), False
    while True:
        gone_s = monotonic() - begun_s
        show(scaler.steps, gone_s)
        alive = scaler.holds or any(query.isActive for query in scaler.queries)
        if stopping.is_set() or not alive or (limit_s is not None and gone_s >= limit_s):
            return
        if scaler.status.startswith("failed") and not told:
            # Without a scaler the query goes on as it is.
            typer.echo(f"the scaler {scaler.status}; the query goes on at its size", err=True)
            told = True
        stopping.wait(LOOK_S)


def _end(scaler: Scaler) -> str:
    """Stop the scaler, then the query after a batch; return why the query failed, "" when it did not."""
    from rheostat.clock import WallClock
    from rheostat.engine.spark.lifecycle.restart import stop_after_batch

    scaler.stop()
    failed = ""
    for query in scaler.queries:
        if (error := query.exception()) is not None:
            failed = f"the query failed: {str(error).splitlines()[0]}"
        else:
            stop_after_batch(query, WallClock(), STOP_S)
    return failed or (f"the scaler {scaler.status}" if scaler.status.startswith("failed") else "")


def _session(
    name: str,
    master: str | None,
    executors: tuple[int, int],
    cores: str | None,
    memory_mb: str | None,
    conf: list[str],
    mode: str,
) -> SparkSession:
    """Start a session with these settings; under spark-submit, with those that it was given."""
    import os

    from rheostat.config.reader import scalar
    from rheostat.engine.spark.session.session import session, start_session
    from rheostat.engine.spark.session.settings import NEEDED, RECOMMENDED
    from rheostat.errors import InvalidValue

    own = {"spark.ui.showConsoleProgress": "false"}
    for text in conf:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            raise InvalidValue(f"--conf {text!r}: a Spark setting is written spark.key=value")
        own[key] = value
    if mode == "realtime" and not any(key.startswith("spark.jars") for key in own):
        from rheostat.kafka.jars import connector_jars, is_cached

        # For development; a cluster has the connector of its own Spark version in spark.jars.packages.
        own |= {"spark.jars": ",".join(map(str, connector_jars()))} if is_cached() else {}
    if mode == "realtime" and master is not None and master.startswith("local["):
        return start_session({"spark.app.name": name, "spark.master": master, **own})
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        sizes = {"cores": cores, "memory_mb": memory_mb}
        given = {key: scalar(text) for key, text in sizes.items() if text is not None}
        least, most = executors
        return session(name, master or "local-cluster", min_executors=least, max_executors=most, conf=own, **given)
    taken = {"--master": master, "--cores": cores, "--memory-mb": memory_mb}
    if twice := [option for option, value in taken.items() if value is not None]:
        raise InvalidValue(f"{twice[0]} is set by spark-submit here: leave it out")
    from pyspark import SparkConf

    defaults = {key: value for key, (value, _) in RECOMMENDED.items()}
    defaults |= {setting.key: setting.value for setting in NEEDED if setting.value is not None}
    submitted = dict(SparkConf().getAll())
    return start_session({**{k: v for k, v in defaults.items() if k not in submitted}, **own})


def _defined(start: Any, options: list[str]) -> Any:
    """Give a pipeline its options; a function that starts a query has none."""
    from rheostat.errors import InvalidValue

    given = {}
    for text in options:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidValue(f"--option {text!r}: an option of the pipeline is written key=value")
        given[key] = value
    define = getattr(start, "define", None)
    if define is not None:
        return define(**given)
    if given:
        raise InvalidValue("--option is for a rheostat.pipeline; this is a function that starts a query by itself")
    return start


def _policy_and_slo(policy: str | None, headroom: str | None, max_latency: str | None) -> tuple[Policy[Any], SLO]:
    """Return the policy and the SLO: 20 % headroom unless it is given or the policy has a factor of its own."""
    from rheostat.config.build import build
    from rheostat.config.named import parse_named
    from rheostat.config.reader import scalar
    from rheostat.job.slo import DEFAULT_SLO, SLO
    from rheostat.policy.registry import make_policy

    chosen = make_policy(*parse_named(policy or "ds2"))
    given = {"headroom": headroom, "max_latency_s": max_latency}
    objectives = {key: scalar(value) for key, value in given.items() if value is not None}
    if headroom is None and chosen.factor()[1] is None:
        objectives["headroom"] = DEFAULT_SLO.headroom
    return chosen, build(SLO, objectives, "slo")


def _bounds(text: str) -> tuple[int, int]:
    from rheostat.config.reader import scalar
    from rheostat.engine.spark.session.settings import checked_executors
    from rheostat.errors import InvalidValue

    numbers = tuple(scalar(part) for part in text.split(":"))
    if len(numbers) != 2:
        raise InvalidValue(f"--executors is {text!r}: give the smallest and the largest number, as in 2:8")
    return checked_executors(*numbers)


def _number(option: str, text: str | None, default: float) -> float:
    from rheostat.config.reader import scalar
    from rheostat.errors import InvalidValue
    from rheostat.job.frozen import check_number

    value = default if text is None else scalar(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue(f"{option} is {text!r}: it is a number of seconds")
    check_number(option, value, least=0.1 if text is not None else 0.0)
    return float(value)


def _told_to_stop() -> Any:
    """Return a context with an event that SIGINT and SIGTERM set; PySpark's own answer to SIGINT fails the query."""
    import signal
    import threading
    from contextlib import contextmanager

    @contextmanager
    def told() -> Any:
        stopping = threading.Event()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            signal.signal(number, lambda *_: stopping.set())
        try:
            yield stopping
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    return told()
