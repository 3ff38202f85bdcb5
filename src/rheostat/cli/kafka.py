"""`rheostat kafka`: a Kafka to develop against, with nothing to install but Java."""

from __future__ import annotations

from typing import Annotated

import typer

kafka = typer.Typer(
    help="A Kafka to develop against: fetch its jars, run a broker.", no_args_is_help=True, rich_markup_mode=None
)


@kafka.command()
def fetch() -> None:
    """Fetch the jars of a broker and of Spark's Kafka connector into the cache, once."""
    from rheostat.kafka.jars import connector_jars

    jars = connector_jars(_tell)
    _tell(f"Kafka's jars are in {jars[0].parents[1]}")
    # For scripts: --conf spark.jars=$(rheostat kafka fetch)
    typer.echo(",".join(map(str, jars)))


@kafka.command()
def run(
    port: Annotated[str, typer.Option(metavar="N", help="Where it listens, on 127.0.0.1.")] = "9092",
    topics: Annotated[
        list[str] | None, typer.Option("--topic", metavar="NAME[:PARTITIONS]", help="Create a topic; repeat for more.")
    ] = None,
) -> None:
    """Run a broker until Ctrl-C; its data go with it."""
    import signal
    import time

    wanted = dict(_topic(text) for text in topics or ())
    number = _whole("--port", port)
    from rheostat.errors import EngineError
    from rheostat.kafka.broker import Broker

    # As Ctrl-C does: the broker's folder is deleted on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Broker(port=number, tell=_tell) as broker:
            for name, partitions in wanted.items():
                broker.create(name, partitions)
            typer.echo(f"bootstrap.servers is {broker.bootstrap}; Ctrl-C ends the broker")
            while broker.pid is not None:
                time.sleep(0.5)
            raise EngineError(f"the broker ended by itself: {broker.last_words()}")
    except KeyboardInterrupt:
        _tell("the broker has ended")


def _topic(text: str) -> tuple[str, int]:
    name, colon, partitions = text.partition(":")
    return name, _whole(f"partitions of --topic {name}", partitions) if colon else 1


def _whole(what: str, text: str) -> int:
    from rheostat.errors import InvalidValue

    if not text.isdecimal() or int(text) < 1:
        raise InvalidValue(f"{what} must be a whole number of at least 1, not {text!r}")
    return int(text)


def _tell(text: str) -> None:
    typer.echo(text, err=True)
