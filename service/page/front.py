"""The door: what programs ask for goes to the API, everything else is a page."""

from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

# Told apart here and not by a mount, which would swallow the API's own 404 and 405.
_API = ("/v1/", "/livez", "/readyz", "/metrics", "/docs", "/redoc", "/openapi.json", "/static-offline-docs/")


@dataclass(frozen=True)
class Front:
    """One address for both; the pages' start and end are the whole's."""

    api: ASGIApp
    pages: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        is_api = scope["type"] == "http" and scope["path"].startswith(_API)
        await (self.api if is_api else self.pages)(scope, receive, send)
