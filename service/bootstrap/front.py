"""The pages' visitors, as long as there is no page to sign in on."""

from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wire.rest.people import SESSION_COOKIE


@dataclass(frozen=True)
class CookieForAll:
    """Gives whoever opens a page the page's own key as a cookie, so that its links to files and uploads work.

    Until there is a page to sign in on; no less safe than the page itself, which does whatever it is asked to.
    """

    app: ASGIApp
    key: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.append("Set-Cookie", f"{SESSION_COOKIE}={self.key}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        await self.app(scope, receive, answer if scope["type"] == "http" else send)
