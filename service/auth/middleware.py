"""Authentication, permissions, rate limits and body limits, before any route is called."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRouter
from starlette.requests import cookie_parser
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.auth.authenticator import Authenticator
from service.errors import Forbidden, NotFound, NotSignedIn, ServiceError, TooLarge, TooMany
from service.http.permissions import MatchedRule, RouteScope, Table
from service.http.principal import Principal, RequestContext, request_context
from service.http.problems import problem_of
from service.http.rate_limit import TokenBuckets, network_of
from wire.rest.auth import SESSION_COOKIE
from wire.rest.health import OTHER_PROBES

HeaderMap = dict[bytes, str]
CHECKED: Final = "alarmcast.checked"
_ANONYMOUS_BODY_BYTES = 16 * 1024  # enough for a name and a password
_RECHECK_INTERVAL_S = 5.0  # after which a stream checks its token again
_PROBES = frozenset({"/livez", "/readyz"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    # Responses are data: nothing in them may run, be framed or fetch anything.
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
# The documentation page starts with an inline script.
_DOCS_POLICY: Final = (
    b"default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    b"script-src 'self' 'unsafe-inline'; worker-src blob:; frame-ancestors 'none'"
)
_DOCS: Final = (b"content-security-policy", _DOCS_POLICY)
_OVERRIDES: Final = {"/docs": (_DOCS,), "/docs/oauth2-redirect": (_DOCS,), "/redoc": (_DOCS,)}
_STRICT_TRANSPORT: Final = (b"strict-transport-security", b"max-age=31536000")


@dataclass(frozen=True)
class AuthConfig:
    """Settings and services of the middleware; ``authenticated`` and ``anonymous`` are rate limits."""

    authenticator: Authenticator
    now: Callable[[], datetime]  # plant clock
    max_body_bytes: int
    authenticated: TokenBuckets
    anonymous: TokenBuckets
    open_docs: bool = False
    monotonic: Callable[[], float] = time.monotonic
    table: Table = field(default_factory=Table)

    def charge_anonymous(self, token: str | None, bucket: str) -> bool:
        """Charge a request as anonymous unless its token was recently valid; return whether it was charged.

        Called before the token is looked up, which takes a thread and a query. Raises :class:`TooMany` above the
        rate limit.
        """
        if token is not None and self.authenticator.was_recently_valid(token):
            return False
        _check_rate(self.anonymous.take(bucket))
        return True

    async def identify(self, token: str | None, bucket: str) -> Principal | None:
        """Return the principal of a token; None, after a charge, if anonymous; raises :class:`TooMany`."""
        charged = self.charge_anonymous(token, bucket)
        principal = await self.authenticate(token) if token is not None else None
        if principal is None:
            if not charged:  # the token was valid until now
                _check_rate(self.anonymous.take(bucket))
            return None
        if charged:
            self.anonymous.refund(bucket)
        return principal

    def charge_page(self, token: str | None, address: str) -> None:
        """Charge a page request, or raise :class:`TooMany`."""
        self.charge_anonymous(token, anonymous_bucket(address))

    async def page_visitor(self, token: str | None, address: str) -> str | None:
        """Return the name behind a token, None if anonymous; raises :class:`TooMany`."""
        principal = await self.identify(token, anonymous_bucket(address))
        return None if principal is None else principal.name

    async def authenticate(self, token: str) -> Principal | None:
        """Return the principal of a token."""
        cached = self.authenticator.cached(token)
        return cached or await run_in_threadpool(self.authenticator.authenticate, token)


class AuthMiddleware:
    """ASGI middleware around the whole API, streams and files included."""

    def __init__(self, app: ASGIApp, config: AuthConfig) -> None:
        self._app, self._config = app, config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request and pass it on, or answer with a problem."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":  # the API has no websockets
            await _RequestAuth(self._app, self._config, scope, receive, send).run()


class _StreamRevoked(Exception):
    """The token of a stream is no longer valid."""


@dataclass
class _RequestAuth:
    """The checks of one request."""

    app: ASGIApp
    config: AuthConfig
    scope: Scope
    receive: Receive
    send: Send
    token: str | None = None
    principal: Principal | None = None
    _checked_at: float = 0.0
    _body_bytes: int = 0
    _max_body_bytes: int | None = None

    async def run(self) -> None:
        path = self.scope["path"]
        match = self._match(path, self.scope["method"])
        try:
            context = await self._check(match)
        except ServiceError as error:
            await problem_of(path, error)(self.scope, self.receive, self._answer)
            return
        self.scope[CHECKED] = match.route if match else None
        self._checked_at = self.config.monotonic()
        with request_context(context), _end_revoked_streams():
            await self.app(self.scope, self._receive, self._answer)

    def _match(self, path: str, method: str) -> MatchedRule | None:
        match = self.config.table.find(method, path)
        if match is None and path.startswith("/static-offline-docs/"):
            return self.config.table.find(method, "/static-offline-docs/any")
        return match

    async def _check(self, match: MatchedRule | None) -> RequestContext:
        headers = {name: value.decode("latin-1") for name, value in self.scope["headers"]}
        client = self.scope.get("client")
        origin = str(client[0]) if client else None
        self.token, by_cookie = _token(headers)
        self.principal = await self._identify(_bucket(origin, match))
        if match is None and self._is_unknown_probe():
            raise NotFound(_UNKNOWN_PROBE)
        if match is None or not self._is_open(match):
            if self.principal is None:
                raise NotSignedIn(_ANONYMOUS if self.token is None else _NOT_AUTHENTICATED)
            if match is not None:
                match.check(self.principal)
        if self.scope["method"] not in _SAFE_METHODS and (by_cookie or self.principal is None):
            _require_same_origin(headers)
        self._check_body_size(match, headers)
        return RequestContext(self.principal, origin, self.config.now())

    def _is_unknown_probe(self) -> bool:
        """Return whether a path is a common probe path that has another name here."""
        path = self.scope["path"]
        return path.startswith(OTHER_PROBES) and self._match(path, "GET") is None

    def _is_open(self, match: MatchedRule) -> bool:
        is_docs = self.config.open_docs and match.route in _DOCUMENTATION
        return match.rule.scope is RouteScope.OPEN or is_docs

    async def _identify(self, bucket: str) -> Principal | None:
        principal = await self.config.identify(self.token, bucket)
        if principal is not None and not principal.is_own:
            _check_rate(self.config.authenticated.take(principal.name))
        return principal

    def _check_body_size(self, match: MatchedRule | None, headers: HeaderMap) -> None:
        """Refuse a body that is declared too large, and set the limit for one of undeclared size."""
        if match is not None and match.rule.streams_body:
            return
        self._max_body_bytes = self.config.max_body_bytes if self.principal else _ANONYMOUS_BODY_BYTES
        declared = headers.get(b"content-length", "0")
        if not declared.isdecimal() or int(declared) > self._max_body_bytes:
            raise TooLarge(_too_large(self._max_body_bytes))

    async def _receive(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.request" and self._max_body_bytes is not None:
            self._body_bytes += len(message.get("body", b""))
            if self._body_bytes > self._max_body_bytes:
                # The only exception that FastAPI passes on while it reads a body.
                raise HTTPException(TooLarge.status, _too_large(self._max_body_bytes))
        return message

    async def _answer(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = self._with_security_headers(message.get("headers", ()))
        elif message.get("more_body") and self.token is not None:
            await self._recheck(self.token)
        await self.send(message)

    def _with_security_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Add the security headers that a response does not set itself."""
        result = list(headers)
        names = {name.lower() for name, _ in result}
        security = (*_OVERRIDES.get(self.scope["path"], ()), *_HEADERS)
        if self.scope.get("scheme") == "https":
            security = (*security, _STRICT_TRANSPORT)
        for name, value in security:
            if name not in names:
                names.add(name)
                result.append((name, value))
        return result

    async def _recheck(self, token: str) -> None:
        """End a stream whose token was revoked or whose role or sites have changed."""
        now = self.config.monotonic()
        if now - self._checked_at < _RECHECK_INTERVAL_S or self.principal is None:
            return
        self._checked_at = now
        if await self.config.authenticate(token) != self.principal:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})
            raise _StreamRevoked


@contextmanager
def _end_revoked_streams() -> Iterator[None]:
    """Suppress the exception that ends a revoked stream."""
    try:
        yield
    except _StreamRevoked:
        pass
    except BaseExceptionGroup as group:
        _, others = group.split(_StreamRevoked)
        if others is not None:
            raise


_ANONYMOUS: Final = (
    "Authentication required. Send an API key as `Authorization: Bearer …`, or log in: POST /v1/session."
)
_UNKNOWN_PROBE: Final = (
    "There is no such path. GET /livez is the liveness probe, GET /readyz the readiness probe; "
    "everything else begins with /v1/."
)
_NOT_AUTHENTICATED: Final = "This API key or session is invalid or expired. Log in again, or ask for a new key."
_DOCUMENTATION: Final = frozenset({"/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc"})


def anonymous_bucket(origin: str | None) -> str:
    """Return the rate-limit key of anonymous requests from an address; IPv6 counts by network."""
    return network_of(origin) if origin else "?"


def _bucket(origin: str | None, match: MatchedRule | None) -> str:
    """Return the rate-limit key of an anonymous request; probes have their own, so that nothing starves them."""
    probe = f" {match.route}" if match is not None and match.route in _PROBES else ""
    return f"{anonymous_bucket(origin)}{probe}"


def _check_rate(wait: float) -> None:
    if wait > 0:
        raise TooMany("Too many requests; wait and continue more slowly.", wait=wait)


def _too_large(limit: int) -> str:
    return f"A request body may have at most {limit:,} bytes here; send less."


def _token(headers: HeaderMap) -> tuple[str | None, bool]:
    """Return the token of a request, and whether it came from the cookie."""
    scheme, _, bearer = headers.get(b"authorization", "").partition(" ")
    if scheme.lower() == "bearer" and bearer.strip():
        return bearer.strip(), False
    # The stdlib parser stops at the first invalid cookie, and services on other ports of this host may set some.
    cookie = cookie_parser(headers.get(b"cookie", "")).get(SESSION_COOKIE)
    return (cookie, True) if cookie else (None, False)


def _require_same_origin(headers: HeaderMap) -> None:
    """Refuse requests that another site's page makes a browser send; programs send neither of these headers."""
    fetch_site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if fetch_site is not None:
        is_same = fetch_site in ("same-origin", "none")
    else:
        is_same = origin is None or origin.rpartition("//")[2] == headers.get(b"host")
    if not is_same:
        raise Forbidden("Cross-site requests may not change anything here.")


async def require_checked(request: Request) -> None:
    """Run before every endpoint: the route must be the one that the middleware checked."""
    if request.scope.get(CHECKED) != request.scope["route"].path:
        raise RuntimeError(f"{request.method} {request.scope['route'].path} was not checked by the middleware")


def restrict(app: FastAPI, routers: list[APIRouter], table: Table) -> Table:
    """Return the permissions of an app that has only some of the routes."""
    existing = _routes(app, routers)
    return Table(
        {line: rule for line, rule in table.rules.items() if line in existing or "/static-offline-docs/" in line}
    )


def _routes(app: FastAPI, routers: list[APIRouter]) -> set[str]:
    routes: list[BaseRoute] = [*app.routes, *(route for router in routers for route in router.routes)]
    return {
        f"{method} {route.path}" for route in routes if isinstance(route, Route) for method in route.methods or ()
    }


def check_permissions_complete(app: FastAPI, routers: list[APIRouter], table: Table) -> None:
    """Raise if a route has no entry in the permissions table, or an entry has no route."""
    existing = _routes(app, routers)
    lines = {line for line in table.rules if "/static-offline-docs/" not in line}
    missing, extra = sorted(existing - lines), sorted(lines - existing)
    if missing:
        raise RuntimeError(f"{missing[0]} has no entry in service/http/permissions.py; add one.")
    if extra:
        raise RuntimeError(f"{extra[0]} is in service/http/permissions.py, but there is no such route.")
