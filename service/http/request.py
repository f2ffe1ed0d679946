"""Read what every request has: path parameters, pages of lists, principal, client address, known parameters."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeVar

from fastapi import Path, Query, Request
from fastapi.routing import APIRoute

from service.errors import InputRejected, NotSignedIn
from service.http.principal import Principal, current_user
from wire.enums import PrincipalKind
from wire.identity import ID_PATTERN

Site = Annotated[str, Path(pattern=ID_PATTERN, description="The plant.", examples=["padova"])]

MachineName = Annotated[str, Path(pattern=ID_PATTERN, description="The machine.", examples=["filler-1"])]


def principal() -> Principal:
    """Return the principal of the current request."""
    user = current_user()
    if user is None:
        raise NotSignedIn("Authentication required. Log in first: POST /v1/session.")
    return user


def actor(_request: Request) -> str:
    """Return the name that the audit log records."""
    return principal().name


def author(by: str | None) -> str:
    """Return the author of a change: the logged-in user; a program may name the person it acts for."""
    user = principal()
    if by is None or by == user.name:
        return user.name
    if user.kind is PrincipalKind.SESSION:
        raise InputRejected(f"You are logged in as {user.name}, who is the author. Leave `by` out.")
    return f"{by} ({user.name})"


def client_ip(request: Request) -> str | None:
    """Return the address of the client."""
    return request.client.host if request.client else None


WORD, HALF_WORD = 2**63 - 1, 2**31 - 1  # of PostgreSQL's bigint and integer

Number = Annotated[int, Path(ge=1, le=HALF_WORD, description="Its id.", examples=[1])]
Limit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of items.")]
CursorQuery = Annotated[int | None, Query(ge=1, le=HALF_WORD, description="`next` of the page before.")]
LongCursorQuery = Annotated[int | None, Query(ge=1, le=WORD, description="`next` of the page before.")]
ActiveOnly = Annotated[bool, Query(description="Only those that are active now.")]

ItemT = TypeVar("ItemT")


def paginate(items: list[ItemT], limit: int, item_id: Callable[[ItemT], int]) -> tuple[list[ItemT], int | None]:
    """Return a page of ``items``, which were queried with one more than the limit, and the next cursor."""
    page = items[:limit]
    return page, item_id(page[-1]) if len(items) > limit else None


_PREFIX = "/v1/"  # probes, metrics and documentation accept any parameter


async def known_parameters(request: Request) -> None:
    """Run before every endpoint: raise :class:`InputRejected` for an unknown query parameter."""
    route = request.scope["route"]
    if not request.url.query or not isinstance(route, APIRoute) or not route.path.startswith(_PREFIX):
        return
    known = sorted({str(field.alias) for field in _query_fields(route.dependant)})
    for name in request.query_params:
        if name not in known:
            shown = "".join(char if char.isprintable() else "?" for char in name[:50])
            accepted = f"the parameters {', '.join(known)}" if known else "no parameters"
            raise InputRejected(
                f"There is no query parameter {shown!r} here; this path accepts {accepted}.",
                pointer=f"query/{shown}",
            )


def _query_fields(dependant: Any) -> Iterator[Any]:
    yield from dependant.query_params
    for dependency in dependant.dependencies:
        yield from _query_fields(dependency)
