"""A test server in a process of its own, which a test may kill."""

import os
import signal
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.support.opcua_server", "tests.support.plc_servers"])


def _serve(pipe: Connection, make: Any, arguments: dict[str, Any]) -> None:
    server = make(**arguments)
    pipe.send(None)
    while True:
        name, values = pipe.recv()
        try:
            getattr(server, name)(*values)
        except Exception as error:  # noqa: BLE001 - the test raises it
            pipe.send(RuntimeError(f"{name}: {error!r}"))
        else:
            pipe.send(None)


class ServerProcess:
    """Runs ``make(**arguments)``; each call of a method is forwarded to the process."""

    def __init__(self, make: Any, **arguments: Any) -> None:
        self._make = make
        self._process: BaseProcess | None = None
        self.start(**arguments)

    def start(self, **arguments: Any) -> None:
        self._pipe, other = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=_serve, args=(other, self._make, arguments), daemon=True)
        process.start()
        self._process = process
        other.close()
        self._pipe.recv()

    def call(self, name: str, *values: Any) -> None:
        self._pipe.send((name, values))
        error = self._pipe.recv()
        if error is not None:
            raise error

    def kill(self) -> None:
        """Kill the process as a power failure would."""
        if self._process is not None:
            os.kill(self._process.pid or 0, signal.SIGKILL)
            self._process.join()
            self._process = None
            self._pipe.close()
