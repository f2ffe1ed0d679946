"""The guard at the API's door: asks who is there, how often they come, what they carry, before anything else."""

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

Headings = dict[bytes, str]
CHECKED: Final = "alarmcast.judged"
_STRANGERS_BODY = 16 * 1024  # bytes; enough for a name and a password
_LOOK_AGAIN = 5.0  # seconds after which a stream asks whether its reader may still read
_PROBES = frozenset({"/livez", "/readyz"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    # What the API answers is data: nothing of it may run, be framed or fetch anything.
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
# The documentation is a page that starts itself with a few lines of its own script.
_DOCS_POLICY: Final = (
    b"default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    b"script-src 'self' 'unsafe-inline'; worker-src blob:; frame-ancestors 'none'"
)
_DOCS: Final = (b"content-security-policy", _DOCS_POLICY)
_OVERRIDES: Final = {"/docs": (_DOCS,), "/docs/oauth2-redirect": (_DOCS,), "/redoc": (_DOCS,)}
_STRICT_TRANSPORT: Final = (b"strict-transport-security", b"max-age=31536000")


@dataclass(frozen=True)
class AuthConfig:
    """What the guard goes by."""

    access: Authenticator
    now: Callable[[], datetime]  # by the plant's clock
    largest_body: int  # bytes
    known: TokenBuckets  # of those whom we know
    strangers: TokenBuckets
    open_docs: bool = False
    monotonic: Callable[[], float] = time.monotonic
    table: Table = field(default_factory=Table)

    def charge_anonymous(self, token: str | None, bucket: str) -> bool:
        """Take a request out of a stranger's bucket and return True; False for a token that was good lately.

        Before anybody is asked whose a token is, because that takes a thread and a query. Raises
        :class:`TooMany` if there is nothing to take.
        """
        if token is not None and self.access.was_recently_valid(token):
            return False
        _insist_on_pace(self.strangers.take(bucket))
        return True

    async def identify(self, token: str | None, bucket: str) -> Principal | None:
        """Return who asks, or None for a stranger, whose bucket pays for it; raises :class:`TooMany`."""
        charged = self.charge_anonymous(token, bucket)
        principal = await self.who(token) if token is not None else None
        if principal is None:
            if not charged:  # the token was good until now
                _insist_on_pace(self.strangers.take(bucket))
            return None
        if charged:
            self.strangers.refund(bucket)
        return principal

    def charge_page(self, token: str | None, address: str) -> None:
        """Let a page be drawn, or raise :class:`TooMany`."""
        self.charge_anonymous(token, stranger_bucket(address))

    async def page_visitor(self, token: str | None, address: str) -> str | None:
        """Return the name of whoever has a token, None for a stranger; raises :class:`TooMany`."""
        principal = await self.identify(token, stranger_bucket(address))
        return None if principal is None else principal.name

    async def who(self, token: str) -> Principal | None:
        """Return whose a token is."""
        known = self.access.cached(token)
        return known or await run_in_threadpool(self.access.authenticate, token)


class AuthMiddleware:
    """ASGI middleware around the whole API, streams and files included."""

    def __init__(self, app: ASGIApp, door: AuthConfig) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let in whoever may come in."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":  # there is nothing here that speaks over a websocket
            await _RequestAuth(self._app, self._door, scope, receive, send).run()


class _StreamRevoked(Exception):
    """A reader of a stream may no longer read it."""


@dataclass
class _RequestAuth:
    """One request."""

    app: ASGIApp
    door: AuthConfig
    scope: Scope
    receive: Receive
    send: Send
    token: str | None = None
    principal: Principal | None = None
    _looked: float = 0.0
    _taken: int = 0
    _largest: int | None = None

    async def run(self) -> None:
        path = self.scope["path"]
        found = self._found(path, self.scope["method"])
        try:
            asking = await self._judged(found)
        except ServiceError as error:
            await problem_of(path, error)(self.scope, self.receive, self._answer)
            return
        self.scope[CHECKED] = found.route if found else None
        self._looked = self.door.monotonic()
        with request_context(asking), _turned_away():
            await self.app(self.scope, self._receive, self._answer)

    def _found(self, path: str, method: str) -> MatchedRule | None:
        found = self.door.table.find(method, path)
        if found is None and path.startswith("/static-offline-docs/"):
            return self.door.table.find(method, "/static-offline-docs/any")
        return found

    async def _judged(self, found: MatchedRule | None) -> RequestContext:
        headers = {name: value.decode("latin-1") for name, value in self.scope["headers"]}
        client = self.scope.get("client")
        origin = str(client[0]) if client else None
        self.token, by_cookie = _token(headers)
        self.principal = await self._known(_bucket(origin, found))
        if found is None and self._is_misnamed():
            raise NotFound(_MISNAMED)
        if found is None or not self._is_open(found):
            if self.principal is None:
                raise NotSignedIn(_STRANGER if self.token is None else _NO_LONGER)
            if found is not None:
                found.check(self.principal)
        if self.scope["method"] not in _SAFE and (by_cookie or self.principal is None):
            _insist_on_same_origin(headers)
        self._bound(found, headers)
        return RequestContext(self.principal, origin, self.door.now())

    def _is_misnamed(self) -> bool:
        """Whether a path is one that probes ask for elsewhere and that has another name here."""
        path = self.scope["path"]
        return path.startswith(OTHER_PROBES) and self._found(path, "GET") is None

    def _is_open(self, found: MatchedRule) -> bool:
        is_docs = self.door.open_docs and found.route in _DOCUMENTATION
        return found.rule.reach is RouteScope.OPEN or is_docs

    async def _known(self, bucket: str) -> Principal | None:
        """Return who asks, None for a stranger, or raise :class:`TooMany`."""
        principal = await self.door.identify(self.token, bucket)
        if principal is not None and not principal.is_own:
            _insist_on_pace(self.door.known.take(principal.name))
        return principal

    def _bound(self, found: MatchedRule | None, headers: Headings) -> None:
        """Refuse a body that says it is too large, and remember the limit for one that does not say."""
        if found is not None and found.rule.streams_body:
            return
        self._largest = self.door.largest_body if self.principal else _STRANGERS_BODY
        declared = headers.get(b"content-length", "0")
        if not declared.isdecimal() or int(declared) > self._largest:
            raise TooLarge(_too_large(self._largest))

    async def _receive(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.request" and self._largest is not None:
            self._taken += len(message.get("body", b""))
            if self._taken > self._largest:
                # The only kind that FastAPI lets through from below while it reads a body.
                raise HTTPException(TooLarge.status, _too_large(self._largest))
        return message

    async def _answer(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = self._with_security_headers(message.get("headers", ()))
        elif message.get("more_body") and self.token is not None:
            await self._look_again(self.token)
        await self.send(message)

    def _with_security_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Add to an answer what a browser may do with it, where it does not say so itself."""
        told = list(headers)
        names = {name.lower() for name, _ in told}
        own = (*_OVERRIDES.get(self.scope["path"], ()), *_HEADERS)
        if self.scope.get("scheme") == "https":
            own = (*own, _STRICT_TRANSPORT)
        for name, value in own:
            if name not in names:
                names.add(name)
                told.append((name, value))
        return told

    async def _look_again(self, token: str) -> None:
        """End a stream whose reader was signed out, or may see other sites now than when it began."""
        now = self.door.monotonic()
        if now - self._looked < _LOOK_AGAIN or self.principal is None:
            return
        self._looked = now
        if await self.door.who(token) != self.principal:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})
            raise _StreamRevoked


@contextmanager
def _turned_away() -> Iterator[None]:
    """Let a stream that was ended end quietly."""
    try:
        yield
    except _StreamRevoked:
        pass
    except BaseExceptionGroup as group:
        _, others = group.split(_StreamRevoked)
        if others is not None:
            raise


_STRANGER: Final = "Who are you? Send an API key as `Authorization: Bearer …`, or sign in: POST /v1/session."
_MISNAMED: Final = (
    "There is no such address. GET /livez says whether the service lives, GET /readyz whether it is ready; "
    "everything else begins with /v1/."
)
_NO_LONGER: Final = "This key or session is not known, or not any more. Sign in again, or ask for another key."
_DOCUMENTATION: Final = frozenset({"/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc"})


def stranger_bucket(origin: str | None) -> str:
    """Return the bucket of strangers at an address, whom nobody can tell apart from their whole IPv6 network."""
    return network_of(origin) if origin else "?"


def _bucket(origin: str | None, found: MatchedRule | None) -> str:
    """Return the bucket of a stranger at an address; probes have their own, so that nothing else starves them."""
    own = f" {found.route}" if found is not None and found.route in _PROBES else ""
    return f"{stranger_bucket(origin)}{own}"


def _insist_on_pace(wait: float) -> None:
    if wait > 0:
        raise TooMany("You ask more often than this service allows; wait and go on more slowly.", wait=wait)


def _too_large(most: int) -> str:
    return f"A request may bring at most {most:,} bytes here; send less."


def _token(headers: Headings) -> tuple[str | None, bool]:
    """Return the token that a request brings, and whether a browser brought it by itself."""
    scheme, _, bearer = headers.get(b"authorization", "").partition(" ")
    if scheme.lower() == "bearer" and bearer.strip():
        return bearer.strip(), False
    # The stdlib's parser gives up at the first odd cookie, and whoever serves another port of this host sets some.
    cookie = cookie_parser(headers.get(b"cookie", "")).get(SESSION_COOKIE)
    return (cookie, True) if cookie else (None, False)


def _insist_on_same_origin(headers: Headings) -> None:
    """Refuse what another site's page makes a browser send; a program sends neither of these headers."""
    fetched, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if fetched is not None:
        is_own = fetched in ("same-origin", "none")
    else:
        is_own = origin is None or origin.rpartition("//")[2] == headers.get(b"host")
    if not is_own:
        raise Forbidden("A page of another site may not order anything here in your name.")


async def require_checked(request: Request) -> None:
    """Run before every endpoint: what the guard judged must be the route that was found."""
    if request.scope.get(CHECKED) != request.scope["route"].path:
        raise RuntimeError(f"{request.method} {request.scope['route'].path} was not judged by the guard")


def restrict(app: FastAPI, nouns: list[APIRouter], table: Table) -> Table:
    """Return the table of an app that has only some of the routes."""
    there = _routes(app, nouns)
    return Table(
        {line: rule for line, rule in table.rules.items() if line in there or "/static-offline-docs/" in line}
    )


def _routes(app: FastAPI, nouns: list[APIRouter]) -> set[str]:
    routes: list[BaseRoute] = [*app.routes, *(route for noun in nouns for route in noun.routes)]
    return {
        f"{method} {route.path}" for route in routes if isinstance(route, Route) for method in route.methods or ()
    }


def check_permissions_complete(app: FastAPI, nouns: list[APIRouter], table: Table) -> None:
    """Refuse to start while a route has no line in the table, or a line no route."""
    there = _routes(app, nouns)
    lines = {line for line in table.rules if "/static-offline-docs/" not in line}
    missing, extra = sorted(there - lines), sorted(lines - there)
    if missing:
        raise RuntimeError(f"{missing[0]} has no line in service/http/permissions.py; say who may use it.")
    if extra:
        raise RuntimeError(f"{extra[0]} stands in service/http/permissions.py, but there is no such route.")
