"""An S3 server in memory, for tests of checkpoints on object stores: what Hadoop's S3A needs, on this machine only.

    with S3Server("bucket") as server:
        server.url                  # http://127.0.0.1:PORT
        server.keys("bucket")

Like Amazon S3, every request is atomic, a listing shows all that was written before it, and a write with
`If-None-Match: *` fails with 412 if the object exists. Signatures are not checked. A test may refuse or delay requests:
`before` is called with each request before it takes effect, `after` before it is answered.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape


@dataclass(frozen=True, slots=True)
class Request:
    """A request, as the hooks and the log of the server show it."""

    method: str
    bucket: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """An object."""

    content: bytes
    at_s: float
    headers: Mapping[str, str]

    @property
    def etag(self) -> str:
        """The hash of the content, in quotes."""
        return f'"{hashlib.md5(self.content, usedforsecurity=False).hexdigest()}"'


class RefusedError(Exception):
    """Raised by a hook: the request is answered with this status and S3's name of the error."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status, self.code = status, code


class LostAnswerError(Exception):
    """Raised by a hook: the connection is closed without an answer."""


Hook = Callable[[Request], None]


class S3Server:
    """Buckets in memory, and an HTTP server for them on a free port of 127.0.0.1."""

    def __init__(self, *buckets: str) -> None:
        self.before: Hook = lambda request: None
        self.after: Hook = lambda request: None
        self.requests: list[Request] = []
        """All requests, in the order in which they came."""
        self._buckets: dict[str, dict[str, Stored]] = {name: {} for name in buckets}
        self._uploads: dict[str, dict[int, bytes]] = {}
        self._lock = threading.Lock()
        self._http = _Listener(("127.0.0.1", 0), _Handler)
        self._http.store = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Return the keys of a bucket that begin with a prefix, sorted."""
        with self._lock:
            return sorted(key for key in self._buckets[bucket] if key.startswith(prefix))

    def content(self, bucket: str, key: str) -> bytes:
        """Return the content of an object."""
        with self._lock:
            return self._buckets[bucket][key].content

    def handle(self, request: Request) -> Answer:
        """Return the answer to a request, with the faults of the hooks."""
        self.requests.append(request)
        try:
            self.before(request)
            with self._lock:
                answer = self._answer(request)
            self.after(request)
        except RefusedError as refused:
            return _error(refused.status, refused.code)
        return answer

    def _answer(self, request: Request) -> Answer:
        bucket = self._buckets.get(request.bucket)
        if bucket is None:
            raise RefusedError(404, "NoSuchBucket")
        if not request.key:
            return self._answer_bucket(request, bucket)
        if "uploads" in request.query or "uploadId" in request.query:
            return self._answer_upload(request, bucket)
        match request.method:
            case "PUT" if source := request.headers.get("x-amz-copy-source"):
                return self._copy(request, bucket, unquote(source).lstrip("/"))
            case "PUT":
                return _put(request, bucket, request.body)
            case "DELETE":
                bucket.pop(request.key, None)
                return Answer(204)
            case "GET" | "HEAD":
                return _get(request, bucket)
        raise RefusedError(501, "NotImplemented")

    def _answer_bucket(self, request: Request, bucket: dict[str, Stored]) -> Answer:
        match request.method:
            case "HEAD":
                return Answer(200)
            case "GET" if "list-type" in request.query:
                return _list(request, bucket)
            case "GET" if "uploads" in request.query:
                return _xml("ListMultipartUploadsResult", "<IsTruncated>false</IsTruncated>")
            case "POST" if "delete" in request.query:
                keys = [node.text or "" for node in ElementTree.fromstring(request.body).iterfind(".//{*}Key")]
                for key in keys:
                    bucket.pop(key, None)
                return _xml("DeleteResult", "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys))
        raise RefusedError(501, "NotImplemented")

    def _answer_upload(self, request: Request, bucket: dict[str, Stored]) -> Answer:
        if request.method == "POST" and "uploads" in request.query:
            upload = f"upload-{len(self.requests)}"
            self._uploads[upload] = {}
            return _xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
        upload = request.query["uploadId"]
        parts = self._uploads.get(upload)
        if parts is None:
            raise RefusedError(404, "NoSuchUpload")
        match request.method:
            case "PUT":
                parts[int(request.query["partNumber"])] = request.body
                return Answer(200, headers={"ETag": Stored(request.body, 0.0, {}).etag})
            case "POST":
                numbers = [
                    int(node.text or "") for node in ElementTree.fromstring(request.body).iterfind(".//{*}PartNumber")
                ]
                put = _put(request, bucket, b"".join(parts[number] for number in numbers))
                del self._uploads[upload]
                return _xml("CompleteMultipartUploadResult", f"<ETag>{escape(put.headers['ETag'])}</ETag>")
            case "DELETE":
                del self._uploads[upload]
                return Answer(204)
        raise RefusedError(501, "NotImplemented")

    def _copy(self, request: Request, bucket: dict[str, Stored], source: str) -> Answer:
        name, _, key = source.partition("/")
        if (stored := self._buckets.get(name, {}).get(key)) is None:
            raise RefusedError(404, "NoSuchKey")
        put = _put(request, bucket, stored.content)
        modified = f"<LastModified>{_iso(time.time())}</LastModified>"
        return _xml("CopyObjectResult", f"<ETag>{escape(put.headers['ETag'])}</ETag>{modified}")


def _put(request: Request, bucket: dict[str, Stored], content: bytes) -> Answer:
    present = bucket.get(request.key)
    if request.headers.get("if-none-match") == "*" and present is not None:
        raise RefusedError(412, "PreconditionFailed")
    if (etag := request.headers.get("if-match")) is not None and (
        present is None or present.etag.strip('"') != etag.strip('"')
    ):
        raise RefusedError(404 if present is None else 412, "NoSuchKey" if present is None else "PreconditionFailed")
    own = {name: value for name, value in request.headers.items() if name.startswith("x-amz-meta-")}
    stored = bucket[request.key] = Stored(content, time.time(), own)
    return Answer(200, headers={"ETag": stored.etag})


def _get(request: Request, bucket: dict[str, Stored]) -> Answer:
    if (stored := bucket.get(request.key)) is None:
        raise RefusedError(404, "NoSuchKey")
    if request.headers.get("if-match", stored.etag).strip('"') != stored.etag.strip('"'):
        raise RefusedError(412, "PreconditionFailed")
    content, size = stored.content, len(stored.content)
    headers = {
        "ETag": stored.etag,
        "Last-Modified": formatdate(stored.at_s, usegmt=True),
        "Content-Type": "application/octet-stream",
        "Accept-Ranges": "bytes",
        **stored.headers,
    }
    if wanted := request.headers.get("range"):
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        begin = int(first) if first else max(0, size - int(last))
        end = min(int(last) + 1, size) if first and last else size
        if begin >= size:
            raise RefusedError(416, "InvalidRange")
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
        return Answer(206, content[begin:end], headers)
    return Answer(200, content, headers)


def _list(request: Request, bucket: dict[str, Stored]) -> Answer:
    query = request.query
    prefix, delimiter, most = query.get("prefix", ""), query.get("delimiter", ""), int(query.get("max-keys", "1000"))
    after = query.get("continuation-token") or query.get("start-after", "")
    entries: dict[str, str] = {}
    last, truncated = "", False
    for key in sorted(bucket):
        if not key.startswith(prefix):
            continue
        folder, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        name = prefix + folder + delimiter if found else key
        if name <= after or name in entries:
            continue
        if len(entries) == most:
            truncated = True
            break
        shown = quote(name) if query.get("encoding-type") == "url" else escape(name)
        stored = bucket[key]
        entries[name] = (
            f"<CommonPrefixes><Prefix>{shown}</Prefix></CommonPrefixes>"
            if found
            else f"<Contents><Key>{shown}</Key><LastModified>{_iso(stored.at_s)}</LastModified>"
            f"<ETag>{escape(stored.etag)}</ETag><Size>{len(stored.content)}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
        )
        last = name
    token = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>" if truncated else ""
    return _xml(
        "ListBucketResult",
        f"<Name>{request.bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(entries)}</KeyCount>"
        f"<MaxKeys>{most}</MaxKeys><IsTruncated>{str(truncated).lower()}</IsTruncated>{token}"
        + "".join(entries.values()),
    )


def _xml(root: str, content: str) -> Answer:
    text = f'<?xml version="1.0" encoding="UTF-8"?><{root}>{content}</{root}>'
    return Answer(200, text.encode(), {"Content-Type": "application/xml"})


def _error(status: int, code: str) -> Answer:
    return Answer(status, _xml("Error", f"<Code>{code}</Code><Message>{code}</Message>").body)


def _iso(at_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at_s))


def _unchunk(body: bytes) -> bytes:
    """Return the content of a body in the encoding aws-chunked: sizes in hex before the pieces, checksums behind."""
    content, rest = b"", body
    while True:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        if length == 0:
            return content
        content, rest = content + rest[:length], rest[length + 2 :]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    store: S3Server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise an answer of two packets waits 40 ms for the client's delayed acknowledgement.
    disable_nagle_algorithm = True
    server: _Listener

    def _serve(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", "0")))
        if "aws-chunked" in headers.get("content-encoding", "") or "x-amz-decoded-content-length" in headers:
            body = _unchunk(body)
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        try:
            answer = self.server.store.handle(Request(self.command, bucket, key, query, headers, body))
        except LostAnswerError:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("x-amz-request-id", "0")
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - http.server calls these names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the method's parameter
        """Print nothing."""
