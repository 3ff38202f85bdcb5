"""A proxy in front of a PostgreSQL socket that breaks at COMMIT."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from urllib.parse import parse_qs, quote, urlsplit

COMMIT = b"COMMIT\x00"


class Proxy:
    """Forwards bytes both ways until `at_commit` says what happens to the next COMMIT.

    `lose`: it is dropped, and the connection is closed. `answer lost`: it is forwarded, and the connection is closed
    instead of the answer. `hold`: it waits for `release`; the client gets nothing.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        user = quote(parts.username or "postgres")
        self.url = f"postgresql://{user}@127.0.0.1:{port}{parts.path}?gssencmode=disable&sslmode=disable"
        self.at_commit = ""
        self.released = threading.Event()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def release(self) -> None:
        """Forward a COMMIT that is held."""
        self.released.set()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.released.set()
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._sockets += [client, server]
                lost = threading.Event()
                threading.Thread(target=self._requests, args=(client, server, lost), daemon=True).start()
                threading.Thread(target=self._answers, args=(client, server, lost), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if COMMIT in data and self.at_commit:
                    how, self.at_commit = self.at_commit, ""
                    if how == "lose":
                        break
                    if how == "hold":
                        self.released.wait()
                    lost.set()  # before the server can answer
                server.sendall(data)
        if not lost.is_set():
            _close(client, server)

    def _answers(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if lost.is_set():
                    break
                client.sendall(data)
        _close(client, server)


def _close(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
