"""Publishes on the change bus that a request over REST has written something."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.messaging.bus import ChangeBus, ResourceChanged

_READ_ONLY: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class PublishWrites:
    """Publishes ``ResourceChanged`` after every successful request that may write."""

    app: ASGIApp
    bus: ChangeBus

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or scope["method"] in _READ_ONLY:
            await self.app(scope, receive, send)
            return
        succeeded = False

        async def send_and_note(message: Message) -> None:
            nonlocal succeeded
            if message["type"] == "http.response.start":
                succeeded = message["status"] < HTTPStatus.BAD_REQUEST
            await send(message)

        await self.app(scope, receive, send_and_note)
        if succeeded:
            self.bus.publish(ResourceChanged())
