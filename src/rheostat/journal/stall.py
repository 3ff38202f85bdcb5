"""An end for calls that PostgreSQL does not answer.

A stopped server, or a network that loses every packet, does not answer, and the server's own time-outs run in the
process that is stopped. The driver would wait for ever. So a call that lasts too long has its socket shut down, which
ends it with an error. The calling thread does all the work of a transaction itself: after the error nothing of it goes
on in this process.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError

from rheostat.errors import JournalError


class CallLimit:
    """Ends the database calls of an engine after `call_s`, and checks of pooled connections after `ping_s`."""

    def __init__(self, engine: Engine, place: str, call_s: float, ping_s: float) -> None:
        self._engine = engine
        self._place = place
        self._call_s = call_s
        self._ping_s = ping_s
        self._thread = threading.local()  # the deadline of the thread's call, and the fuse of its connection
        event.listen(engine, "do_connect", self._connect)
        event.listen(engine, "checkout", self._check)

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Give the block's work on the database a deadline; JournalError after it."""
        self._thread.deadline_s = time.monotonic() + self._call_s
        self._thread.fuse = None
        try:
            yield
        except SQLAlchemyError as error:
            if self._left_s() > 0:
                raise
            raise JournalError(
                f"journal {self._place}: the database has not answered for {self._call_s:g} s: "
                "the batch was written completely or not at all; the next call connects again"
            ) from error
        finally:
            self._guard(None)

    def _left_s(self) -> float:
        return float(self._thread.deadline_s) - time.monotonic()

    def _guard(self, connection: Any) -> None:
        """Shut this connection down at the deadline of the call; no other one any more."""
        if self._thread.fuse is not None:
            self._thread.fuse.remove()
        self._thread.fuse = None if connection is None else Fuse(connection, self._left_s())

    def _connect(self, dialect: Any, _: object, arguments: Any, parameters: Any) -> Any:
        """Connect on a thread of its own, which is left alone at the deadline: name resolution cannot be ended."""
        answer: Future[Any] = Future()

        def connect() -> None:
            try:
                answer.set_result(dialect.connect(*arguments, **parameters))
            except BaseException as error:  # noqa: BLE001 - the calling thread raises it
                answer.set_exception(error)

        threading.Thread(target=connect, name="rheostat-connect", daemon=True).start()
        try:
            connection = answer.result(max(0.0, self._left_s()))
        except TimeoutError:
            answer.add_done_callback(lambda late: late.exception() or late.result().close())
            raise dialect.dbapi.OperationalError("no connection before the deadline") from None
        self._guard(connection)
        return connection

    def _check(self, connection: Any, record: Any, _: object) -> None:
        """Check a connection from the pool; one that is dead or stalls is replaced, within the same call."""
        if not record.info.setdefault("used", False):
            record.info["used"] = True
            return
        ping = Fuse(connection, min(self._ping_s, self._left_s()))
        try:
            self._engine.dialect.do_ping(connection)
        except self._engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError(str(error)) from error
        finally:
            ping.remove()
        self._guard(connection)


class Fuse:
    """Shuts a connection's socket down after some seconds, unless it is removed before."""

    def __init__(self, connection: Any, seconds: float) -> None:
        # A duplicate: the driver may close its own descriptor meanwhile, and the number may become another file's.
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        self._timer = threading.Timer(max(0.0, seconds), self._blow)
        self._timer.daemon = True
        self._timer.start()

    def remove(self) -> None:
        """Leave the connection alone."""
        self._timer.cancel()
        self._socket.close()

    def _blow(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
