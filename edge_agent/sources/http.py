"""A local HTTP endpoint: POST one alarm or a list; the answer follows the spool's commit."""

import hashlib
import hmac
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any

from pydantic import Field

from edge_agent.errors import ConfigRejected
from edge_agent.sources import Context, Record, SourceBatch
from edge_agent.sources.records import read_record
from edge_agent.sources.signals import Options, host_and_port, parse_options
from wire.broker_check import Finding
from wire.log_rows import RowRejected
from wire.records import RecordFields

log = logging.getLogger(__name__)

_MAX_BYTES = 1 << 20
_MAX_ALARMS = 1000
_ANSWER_S = 30.0
_WAIT_S = 0.2
_READ_S = 10.0
_REMEMBERED = 1000  # ids of stored requests
_MAX_ID = 200
_DIGEST_LENGTH = 10
_FIELDS = RecordFields(code="alarm", time="timestamp", text="text", severity="severity", state="state")


class HttpOptions(Options):
    """The table ``[http]``; without a token anyone who reaches the address may send alarms."""

    listen: str = "127.0.0.1:8099"
    token: bool = Field(default=True, description="Require source.password as bearer token.")


@dataclass
class Request:
    """The alarms of a request, its id if it has one, and whether they are stored."""

    bodies: list[dict[str, Any]]
    id: str | None = None
    repeated: bool = False
    done: Event = field(default_factory=Event)
    error: str | None = "the agent is stopping; send the alarms again"


class HttpSource:
    """Takes alarms over HTTP while its batches are read."""

    def __init__(self, options: HttpOptions, context: Context) -> None:
        self._host, self._port = host_and_port(options.listen, "http", 8099)
        self._context, self._token = context, context.password if options.token else None
        if options.token and not context.password:
            raise ConfigRejected("An http source needs source.password, the token that clients send.")
        if not options.token and not _is_loopback(self._host):
            raise ConfigRejected("An http source without a token listens on a loopback address only.")
        self._requests: Queue[Request] = Queue(maxsize=100)
        self._ids: dict[str, str] = {}  # digests of the last ids, and of their alarms

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield the alarms of requests; each is answered when the next batch is requested."""
        self._ids = json.loads(bookmark) if bookmark else {}
        server = self._listen()
        Thread(target=server.serve_forever, kwargs={"poll_interval": _WAIT_S}, daemon=True).start()
        try:
            while not stop.is_set():
                requests = self._take()
                if not requests:
                    continue
                yield self._batch(requests)
                for request in requests:
                    request.done.set()
        finally:
            server.shutdown()
            server.server_close()

    def check(self) -> Iterator[Finding]:
        """Yield whether the address is free."""
        try:
            self._listen().server_close()
        except ConfigRejected as error:
            yield Finding("source", ok=None, message=f"{error} If the agent is running, that is right.")
        else:
            yield Finding("source", ok=True, message=f"http://{self._host}:{self._port} is free")

    def submit(self, request: Request) -> str | None:
        """Wait until the alarms of a request are stored; return an error otherwise."""
        try:
            self._requests.put(request, timeout=_ANSWER_S)
        except Full:
            return "too many requests wait; send the alarms again later"
        if not request.done.wait(_ANSWER_S):
            return "the alarms are not stored yet; they may be stored later"
        return request.error

    def read(self, body: dict[str, Any]) -> Record | None:
        """Return the alarm of a body, or raise :class:`RowRejected`; only ``alarm`` is required."""
        fields = _FIELDS.model_copy(
            update={name: None for name in ("time", "state") if body.get(getattr(_FIELDS, name)) is None}
        )
        nested = next((name for name, value in body.items() if isinstance(value, dict | list)), None)
        if nested is not None:
            raise RowRejected(f"{nested} is not a text or a number")
        return read_record(body.get, fields, self._context)

    def is_allowed(self, authorization: str | None) -> bool:
        """Return whether a request has the token."""
        expected = f"Bearer {self._token}".encode()
        return self._token is None or hmac.compare_digest((authorization or "").encode(), expected)

    def _take(self) -> list[Request]:
        requests: list[Request] = []
        try:
            requests.append(self._requests.get(timeout=_WAIT_S))
            while sum(len(request.bodies) for request in requests) < _MAX_ALARMS:
                requests.append(self._requests.get_nowait())
        except Empty:
            pass
        return requests

    def _batch(self, requests: list[Request]) -> SourceBatch:
        """Return the alarms of requests; each request is stored whole or not at all."""
        batch = SourceBatch([], "")
        for request in requests:
            if self._is_repeated(request):
                continue
            try:
                records = [record for body in request.bodies if (record := self.read(body))]
            except RowRejected as error:
                request.error = str(error)
                batch.skipped.append(f"request: {error}")
                continue
            request.error = "this is a trial; send the alarms again later" if self._context.trial else None
            if request.id is not None:
                self._ids[_digest(request.id)] = _digest(request.bodies)
            for record in records:
                batch.add(*record)
        for oldest in list(self._ids)[:-_REMEMBERED]:
            del self._ids[oldest]
        return replace(batch, bookmark=json.dumps(self._ids, separators=(",", ":")))

    def _is_repeated(self, request: Request) -> bool:
        """Return whether a request with this id was stored before; other alarms with its id are refused."""
        known = None if request.id is None else self._ids.get(_digest(request.id))
        if known is None:
            return False
        same = known == _digest(request.bodies)
        request.repeated = same
        request.error = None if same else "other alarms were sent with this Idempotency-Key; use a new one"
        return True

    def _listen(self) -> ThreadingHTTPServer:
        source = self

        class Handler(_Handler):
            def setup(self) -> None:
                self.source = source
                super().setup()

        try:
            return _Server((self._host, self._port), Handler)
        except OSError as error:
            address = f"{self._host}:{self._port}"
            raise ConfigRejected(f"Cannot listen on {address}: {error.strerror}. Correct http.listen.") from None


class _Server(ThreadingHTTPServer):
    allow_reuse_address = os.name == "posix"  # on Windows two programs could then use the same port


class _Handler(BaseHTTPRequestHandler):
    source: HttpSource
    timeout = _READ_S
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        if not self.source.is_allowed(self.headers.get("Authorization")):
            self._answer(401, {"error": "send the token as Authorization: Bearer TOKEN"})
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _MAX_BYTES:
            self._answer(413, {"error": f"send a Content-Length of at most {_MAX_BYTES} bytes"})
            return
        try:
            found = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            self._answer(400, {"error": "the body is not JSON"})
            return
        bodies = found if isinstance(found, list) else [found]
        if len(bodies) > _MAX_ALARMS or not all(isinstance(body, dict) for body in bodies):
            self._answer(400, {"error": f'send {{"alarm": 139}} or a list of at most {_MAX_ALARMS} of them'})
            return
        key = self.headers.get("Idempotency-Key")
        if key is not None and not 1 <= len(key) <= _MAX_ID:
            self._answer(400, {"error": f"send an Idempotency-Key of 1 to {_MAX_ID} characters"})
            return
        request = Request(bodies, key)
        error = self.source.submit(request)
        if error is None:
            self._answer(200, {"stored": 0 if request.repeated else len(bodies)})
        else:
            self._answer(503 if "again" in error or "later" in error else 422, {"error": error})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if status in (401, 413):
            self.send_header("Connection", "close")  # the body was not read
            self.close_connection = True
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        log.debug(format, *args)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:_DIGEST_LENGTH]


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def build(options: dict[str, Any], context: Context) -> HttpSource:
    """Return the source of the table ``[http]``."""
    return HttpSource(parse_options(HttpOptions, options, "http"), context)
