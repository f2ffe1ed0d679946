"""Security headers of every page: own sources only, no frames, no sniffing, no caching."""

from dataclasses import dataclass
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# NiceGUI uses inline scripts and compiles Vue templates in the browser, so both are allowed. Data is shown as text
# only; tests/page/test_injection.py checks that.
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
    """An app whose responses have these headers."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and add headers to its response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope.get("scheme") == "https":
                    headers.setdefault("Strict-Transport-Security", _STRICT_TRANSPORT)
                if headers.get("content-type", "").startswith("text/html"):
                    headers["Cache-Control"] = "no-store"  # not shown again after signing out
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)
