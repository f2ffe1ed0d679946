"""How often pages are drawn: each is kept for its browser for a minute, and strangers' browsers may never come."""

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import TooMany
from wire.rest.people import SESSION_COOKIE

# What a page is made of: files, many for each page, and the connection by which it lives.
ASSETS = ("/static/", "/_nicegui/", "/_nicegui_ws/", "/favicon.ico")


@dataclass(frozen=True)
class Paced:
    """Pages, if ``insist`` lets whoever brings a token (or none) from an address; it raises :class:`TooMany`."""

    pages: ASGIApp
    insist: Callable[[str | None, str], object]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer when to come again."""
        if scope["type"] == "http" and not scope["path"].startswith(ASSETS):
            request = Request(scope)
            address = request.client.host if request.client else "?"
            try:
                self.insist(request.cookies.get(SESSION_COOKIE), address)
            except TooMany as error:
                headers = {"Retry-After": str(error.retry_after)}
                await PlainTextResponse(str(error), error.status, headers)(scope, receive, send)
                return
        await self.pages(scope, receive, send)
