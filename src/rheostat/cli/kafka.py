"""`rheostat kafka`: a Kafka broker for development, which needs only Java."""

from __future__ import annotations

from typing import Annotated

import typer

kafka = typer.Typer(
    help="Fetch Kafka's jars, and run a broker for development.", no_args_is_help=True, rich_markup_mode=None
)


@kafka.command()
def fetch() -> None:
    """Fetch the jars of a broker and of Spark's Kafka connector into the cache, once."""
    from rheostat.kafka.jars import connector_jars

    jars = connector_jars(_notify)
    _notify(f"Kafka's jars are in {jars[0].parents[1]}")
    # For scripts: --conf spark.jars=$(rheostat kafka fetch)
    typer.echo(",".join(map(str, jars)))


@kafka.command()
def run(
    port: Annotated[str, typer.Option(metavar="N", help="Port of the broker on 127.0.0.1.")] = "9092",
    topics: Annotated[
        list[str] | None, typer.Option("--topic", metavar="NAME[:PARTITIONS]", help="Create a topic; repeat for more.")
    ] = None,
) -> None:
    """Run a broker until Ctrl-C, then delete its data."""
    import signal
    import time

    partitions_by_topic = dict(_topic(text) for text in topics or ())
    number = _whole("--port", port)
    from rheostat.errors import EngineError
    from rheostat.kafka.broker import Broker

    # SIGTERM acts like Ctrl-C, so that the broker's folder is deleted.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Broker(port=number, notify=_notify) as broker:
            for name, partitions in partitions_by_topic.items():
                broker.create(name, partitions)
            typer.echo(f"bootstrap.servers is {broker.bootstrap}; Ctrl-C ends the broker")
            while broker.pid is not None:
                time.sleep(0.5)
            raise EngineError(f"the broker's process ended: {broker.last_error()}")
    except KeyboardInterrupt:
        _notify("the broker has ended")


def _topic(text: str) -> tuple[str, int]:
    name, colon, partitions = text.partition(":")
    return name, _whole(f"partitions of --topic {name}", partitions) if colon else 1


def _whole(what: str, text: str) -> int:
    from rheostat.errors import InvalidValue

    if not text.isdecimal() or int(text) < 1:
        raise InvalidValue(f"{what} must be a whole number of at least 1, not {text!r}")
    return int(text)


def _notify(text: str) -> None:
    typer.echo(text, err=True)
