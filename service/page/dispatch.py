"""Passes requests to the API or to the pages."""

from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wire.rest.health import OTHER_PROBES

# By prefix and not by a mount, which would replace the 404 and 405 of the API.
_API = ("/v1/", "/livez", "/readyz", "/metrics", "/docs", "/redoc", "/openapi.json", "/static-offline-docs/")

_NO_RESPONSE = "No response returned."  # the error of Starlette's middleware for an aborted request
_DISCONNECTED = "alarmcast.disconnected"


@dataclass(frozen=True)
class ApiOrPages:
    """Serves the API and the pages at one address; lifespan events go to the pages."""

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
        """Draw a page; that the client disconnected meanwhile is no error."""

        async def receive_and_note() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                scope[_DISCONNECTED] = True
            return message

        try:
            await self.pages(scope, receive_and_note, send)
        except RuntimeError as error:
            if not is_client_disconnect(scope, error):
                raise


def is_client_disconnect(scope: Scope, error: Exception) -> bool:
    """Return whether an error only means that the client has disconnected."""
    return scope.get(_DISCONNECTED, False) and str(error) == _NO_RESPONSE
