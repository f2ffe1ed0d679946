"""A local HTTP endpoint: POST one alarm or a list; the answer follows the spool's commit."""

import hmac
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
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
_FIELDS = RecordFields(code="alarm", time="timestamp", text="text", severity="severity", state="state")


class HttpOptions(Options):
    """The table ``[http]``; without a token anyone who reaches the address may send alarms."""

    listen: str = "127.0.0.1:8099"
    token: bool = Field(default=True, description="Require source.password as bearer token.")


@dataclass
class _Request:
    """The alarms of a request, and whether they are stored."""

    bodies: list[dict[str, Any]]
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
        self._requests: Queue[_Request] = Queue(maxsize=100)

    def batches(self, _bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield the alarms of requests; each is answered when the next batch is requested."""
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

    def submit(self, bodies: list[dict[str, Any]]) -> str | None:
        """Wait until alarms are stored; return an error otherwise."""
        request = _Request(bodies)
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
        return read_record(body.get, fields, self._context)

    def is_allowed(self, authorization: str | None) -> bool:
        """Return whether a request has the token."""
        expected = f"Bearer {self._token}".encode()
        return self._token is None or hmac.compare_digest((authorization or "").encode(), expected)

    def _take(self) -> list[_Request]:
        requests: list[_Request] = []
        try:
            requests.append(self._requests.get(timeout=_WAIT_S))
            while sum(len(request.bodies) for request in requests) < _MAX_ALARMS:
                requests.append(self._requests.get_nowait())
        except Empty:
            pass
        return requests

    def _batch(self, requests: list[_Request]) -> SourceBatch:
        """Return the alarms of requests; each request is stored whole or not at all."""
        batch = SourceBatch([], "-")
        for request in requests:
            try:
                records = [record for body in request.bodies if (record := self.read(body))]
            except RowRejected as error:
                request.error = str(error)
                batch.skipped.append(f"request: {error}")
                continue
            request.error = "this is a trial; send the alarms again later" if self._context.trial else None
            for record in records:
                batch.add(*record)
        return batch

    def _listen(self) -> ThreadingHTTPServer:
        source = self

        class Handler(_Handler):
            def setup(self) -> None:
                self.source = source
                super().setup()

        try:
            return ThreadingHTTPServer((self._host, self._port), Handler)
        except OSError as error:
            address = f"{self._host}:{self._port}"
            raise ConfigRejected(f"Cannot listen on {address}: {error.strerror}. Correct http.listen.") from None


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
        error = self.source.submit(bodies)
        if error is None:
            self._answer(200, {"stored": len(bodies)})
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


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def build(options: dict[str, Any], context: Context) -> HttpSource:
    """Return the source of the table ``[http]``."""
    return HttpSource(parse_options(HttpOptions, options, "http"), context)
