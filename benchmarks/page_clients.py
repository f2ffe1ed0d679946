"""So many open fleet pages without a browser: each asks for the page and keeps its live connection, as a tab does.

Run by ``benchmarks.page`` as a process of its own: it says ``open`` on a line when all are there, and when its
input is closed how many messages and bytes they received, as JSON.
"""

import asyncio
import json
import re
import sys
from dataclasses import dataclass
from uuid import uuid4

import httpx
import socketio

from wire.rest.auth import SESSION_COOKIE

_CLIENT_ID = re.compile(r"['\"]client_id['\"]\s*:\s*['\"]([0-9a-f-]{36})['\"]")


@dataclass
class Received:
    """What the open pages were sent."""

    messages: int = 0
    bytes: int = 0

    def __call__(self, *message: object) -> None:
        """Count a message."""
        self.messages += 1
        self.bytes += len(json.dumps(message))


async def _open(address: str, token: str, received: Received) -> socketio.AsyncClient:
    async with httpx.AsyncClient(timeout=60, cookies={SESSION_COOKIE: token}) as http:
        page = (await http.get(address)).text
    found = _CLIENT_ID.search(page)
    if found is None:
        raise RuntimeError("the page does not say who it is")
    query = {
        "client_id": found[1],
        "document_id": str(uuid4()),
        "tab_id": str(uuid4()),
        "old_tab_id": "",
        "next_message_id": "0",
        "implicit_handshake": "true",
    }
    viewer = socketio.AsyncClient(reconnection=False)
    for name in ("update", "run_javascript", "run_method"):
        viewer.on(name, received)
    words = "&".join(f"{name}={value}" for name, value in query.items())
    await viewer.connect(f"{address}?{words}", socketio_path="/_nicegui_ws/socket.io", transports=["websocket"])
    return viewer


async def _watch(address: str, pages: int, token: str) -> None:
    received = Received()
    viewers = [await _open(address, token, received) for _ in range(pages)]
    print("open", flush=True)
    received.messages = received.bytes = 0  # what an opening costs is another figure
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps({"messages": received.messages, "bytes": received.bytes}), flush=True)
    for viewer in viewers:
        await viewer.disconnect()


if __name__ == "__main__":
    asyncio.run(_watch(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
