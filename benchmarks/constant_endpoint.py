"""The service with one more endpoint, which returns as many bytes as asked for: the limit of a forecast.

``python -m benchmarks.constant_endpoint --data-dir DIR --port N --limit-port N --broker-port N`` serves one app
on two
ports: one opened as ``alarmcast serve`` opens its own, one opened here without Nagle's delay. The limit is asked
for at the second. At the first, a delay of the listener would slow both sides alike and vanish from the ratio.
"""

import argparse
import socket
from pathlib import Path

import uvicorn
from fastapi import Response

from benchmarks.servers import HOST
from service.app.configuration import load_settings
from service.app.http_server import listen, url_of
from service.app.service import Service
from service.app.stores import open_stores
from service.http.permissions import RouteScope, Rule
from wire.enums import Role

PATH = "/benchmark/constant/{size}"


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    for name in ("--port", "--limit-port", "--broker-port"):
        parser.add_argument(name, type=int, required=True)
    flags = vars(parser.parse_args())
    limit_port = flags.pop("limit_port")
    settings = load_settings(**flags)
    with (
        listen(settings.host, settings.port) as ours,
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as limit,
        open_stores(settings) as stores,
    ):
        limit.bind((HOST, limit_port))
        service = Service(settings, stores)
        service.auth.config.table.add(f"GET {PATH}", Rule(Role.VIEWER, RouteScope.OPEN))
        kept: dict[int, bytes] = {}

        @service.app.get(PATH)
        async def constant(size: int) -> Response:
            return Response(kept.setdefault(size, b" " * size), media_type="application/json")

        service.announce(url_of(ours))
        service.start()
        try:
            uvicorn.Server(uvicorn.Config(service.app, log_config=None, access_log=False)).run([ours, limit])
        finally:
            service.stop()


if __name__ == "__main__":
    main()
