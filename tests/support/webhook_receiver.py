"""A real receiver of webhooks on a free port, that answers as a test wants, or does not answer at all."""

import json
import ssl
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

HANG = -1


@dataclass
class Letter:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """Answers the paths it knows with a status, ``HANG`` meaning silence until it is closed, others with 204."""

    answers: dict[str, int] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    text: bytes = b""
    letters: list[Letter] = field(default_factory=list)
    _closing: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._take(self)

            def do_GET(self) -> None:
                receiver._take(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def speak_tls(self, certificate: Path, key: Path) -> None:
        """Show a certificate to everybody who connects from now on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def at(self, path: str) -> list[Letter]:
        return [letter for letter in self.letters if letter.path == path]

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _take(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        path = urlsplit(request.path).path
        self.letters.append(Letter(path, dict(request.headers.items()), body))
        status = self.answers.get(path, 204)
        if status == HANG:
            self._closing.wait(30)
            return
        request.send_response(status)
        for name, value in self.headers.items():
            request.send_header(name, value)
        if status != 204:
            request.send_header("Content-Length", str(len(self.text)))
        request.end_headers()
        if status != 204:
            request.wfile.write(self.text)
