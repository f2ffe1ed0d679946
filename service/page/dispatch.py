"""The door: what programs ask for goes to the API, everything else is a page."""

from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wire.rest.health import OTHER_PROBES

# Told apart here and not by a mount, which would swallow the API's own 404 and 405.
_API = ("/v1/", "/livez", "/readyz", "/metrics", "/docs", "/redoc", "/openapi.json", "/static-offline-docs/")

_NO_RESPONSE = "No response returned."  # what Starlette's middleware says when a request was given up
_LEFT = "alarmcast.left"


@dataclass(frozen=True)
class ApiOrPages:
    """One address for both; the pages' start and end are the whole's."""

    api: ASGIApp
    pages: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.pages(scope, receive, send)
        elif scope["path"].startswith(_API + OTHER_PROBES):
            await self.api(scope, receive, send)
        else:
            await self._draw(scope, receive, send)

    async def _draw(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Draw a page; that it came to nothing because its reader left meanwhile is no error."""

        async def heard() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                scope[_LEFT] = True
            return message

        try:
            await self.pages(scope, heard, send)
        except RuntimeError as error:
            if not is_client_disconnect(scope, error):
                raise


def is_client_disconnect(scope: Scope, error: Exception) -> bool:
    """Say whether an error only tells that there was nobody left to answer."""
    return scope.get(_LEFT, False) and str(error) == _NO_RESPONSE
