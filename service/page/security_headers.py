"""What a browser is told about every page: nothing from elsewhere, in no frame, guessed at by nobody."""

from dataclasses import dataclass
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# NiceGUI starts its pages with inline scripts and compiles Vue templates in the browser, which is why scripts may
# be inline and evaluated here; what people or machines say is shown as text only, and a test tries to break that.
_POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_STRICT_TRANSPORT: Final = "max-age=31536000"


@dataclass(frozen=True)
class SecurityHeaders:
    """An app whose answers carry these headers."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and dress its answer."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope.get("scheme") == "https":
                    headers.setdefault("Strict-Transport-Security", _STRICT_TRANSPORT)
                if headers.get("content-type", "").startswith("text/html"):
                    headers["Cache-Control"] = "no-store"  # what was seen is not shown again after signing out
            await send(message)

        await self.app(scope, receive, answer if scope["type"] == "http" else send)
