"""The forecast that is asked for most, answered before a router looks for who else might: its bytes are ready."""

from dataclasses import dataclass

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from service.auth.middleware import CHECKED
from service.forecasts.cache import ForecastCache
from wire.identity import MachineId

PATH = "/v1/machines/{site}/{machine}/forecast"


@dataclass(frozen=True)
class ForecastFastPath:
    """ASGI middleware behind the guard, which has judged the request; whatever is not ready goes the usual way."""

    app: ASGIApp
    newest: ForecastCache
    route: BaseRoute  # whose answer it gives, and as which it is counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the router do it."""
        encoded = self._ready(scope)
        if encoded is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = self.route
        length = str(len(encoded)).encode()
        headers = [(b"content-length", length), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": encoded})

    def _ready(self, scope: Scope) -> bytes | None:
        if scope.get(CHECKED) != PATH or scope["query_string"]:
            return None
        *_, site, machine, _ = scope["path"].split("/")
        newest = self.newest.get_fresh(MachineId(site, machine))
        return None if newest is None else newest.encoded
