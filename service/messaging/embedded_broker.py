"""An MQTT broker inside this process, for the demo and for development.

It speaks MQTT 3.1.1 and forgets sessions and messages under way; acks by the service make that harmless.
No claim about delivery rests on it.
"""

import asyncio
import logging
from threading import Event, Thread
from typing import Any

from amqtt.broker import Broker

from service.errors import Unavailable

log = logging.getLogger(__name__)

_CONFIG_PLUGINS = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}


class EmbeddedBroker:
    """amqtt on a loop and thread of its own, listening on loopback only."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._ready = Event()
        self._failure: BaseException | None = None
        self._broker: Broker | None = None
        self._thread = Thread(target=self._run, name="embedded-broker", daemon=True)
        logging.getLogger("amqtt").setLevel(logging.CRITICAL)
        logging.getLogger("transitions").setLevel(logging.CRITICAL)

    def start(self) -> None:
        """Listen, or raise :class:`Unavailable` if the port is taken."""
        self._thread.start()
        self._ready.wait()
        if self._failure:
            raise Unavailable(f"The embedded broker cannot listen on port {self._port}: {self._failure}.")

    def stop(self) -> None:
        """Close all connections and the port."""
        if self._broker is None or not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._broker.shutdown(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(_drop_connection)
        try:
            self._loop.run_until_complete(self._listen())
        except Exception as error:  # noqa: BLE001 - whatever amqtt raises, the starter must hear of it
            self._failure = error.__cause__ or error
        self._ready.set()
        if self._failure is None:
            self._loop.run_forever()
        self._loop.close()

    async def _listen(self) -> None:
        config = {
            "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{self._port}"}},
            "plugins": _CONFIG_PLUGINS,
        }
        self._broker = Broker(config, loop=self._loop)
        await self._broker.start()


def _drop_connection(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Close a connection whose handler broke, so that its client comes back at once.

    amqtt 0.12 stumbles over clients that subscribe while another one connects, and leaves that one hanging.
    """
    log.debug("the embedded broker dropped a connection: %s", context.get("exception"))
    transport = context.get("transport")
    if transport is not None:
        transport.abort()
