"""A call as a value: built once by a noun, sent by either client."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypedDict, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from alarmcast.errors import InvalidResponse, error_from_response
from alarmcast.upload import Upload
from wire.identity import MachineId
from wire.timestamps import isoformat

T = TypeVar("T")
Reader = Callable[[], Callable[[bytes], Iterable[T]]]
Param = str | int | float | datetime | Enum | None
MachineName = MachineId | str  # site/machine


class Route(NamedTuple):
    """An operation of the API, as its OpenAPI document names it."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class RequestSpec:
    """What one call adds to its route."""

    at: Mapping[str, str | int] = field(default_factory=dict)  # fills the path
    params: Mapping[str, Param] = field(default_factory=dict)  # those that are None are left out
    headers: Mapping[str, str | None] = field(default_factory=dict)  # those that are None are left out
    body: BaseModel | None = None
    content: bytes | Upload | None = None
    media_type: str = "application/json"


class HttpxArgs(TypedDict):
    """A request without its body, in httpx's words."""

    method: str
    url: str
    params: dict[str, str]
    headers: dict[str, str]


@dataclass(frozen=True)
class Request:
    """A route and what is asked of it, ready to be sent."""

    route: Route
    parts: HttpxArgs
    body: bytes | Upload | None

    @classmethod
    def build(cls, route: Route, ask: RequestSpec) -> "Request":
        """Write what is asked of a route; raise ``ValueError`` if it cannot be written."""
        body = ask.content if ask.body is None else ask.body.model_dump_json(by_alias=True).encode()
        media_type = None if body is None else ask.media_type
        parts = HttpxArgs(
            method=route.method,
            url=route.path.format_map({name: quote(str(value), safe="") for name, value in ask.at.items()}),
            params={name: _written(value) for name, value in ask.params.items() if value is not None},
            headers=_given({**ask.headers, "Content-Type": media_type}),
        )
        return cls(route, parts, body)


@dataclass(frozen=True)
class TypedRequest(Generic[T]):
    """A request whose answer has a shape; ``also`` is an error's status whose body has that shape too."""

    request: Request
    shape: TypeAdapter[T]
    read_timeout: float | None = None  # for the answer to begin, where the client's own timeout would be too short
    accept_status: int | None = None

    def read(self, response: httpx.Response) -> T:
        """Return the answer, or raise the problem that it is."""
        if response.is_error and response.status_code != self.accept_status:
            raise error_from_response(response)
        return parse_response(self.shape, response.content or b"null", self.request.route)


@dataclass(frozen=True)
class Stream(Generic[T]):
    """A request whose answer comes bit by bit; a new ``reader`` makes items of its bytes.

    One that is ``endless`` ends only when its reader hangs up; that it ended otherwise is an error.
    """

    request: Request
    reader: Reader[T]
    endless: bool = False


class Page(Protocol):
    """Some of many items; ``next`` is the cursor of the page after this one, None on the last."""

    @property
    def next(self) -> str | int | None: ...


PageT = TypeVar("PageT", bound=Page)


@dataclass(frozen=True)
class Pages(Generic[PageT, T]):
    """The items of a page and of all pages after it."""

    first: TypedRequest[PageT]
    items: Callable[[PageT], Sequence[T]]

    def after(self, page: PageT) -> TypedRequest[PageT] | None:
        """Return the call for the page after this one, if there is one."""
        if page.next is None:
            return None
        request = self.first.request
        params = request.parts["params"] | {"cursor": str(page.next)}
        return replace(self.first, request=replace(request, parts=HttpxArgs({**request.parts, "params": params})))


def parse_response(shape: TypeAdapter[T], json: bytes | str, route: Route) -> T:
    """Read what a route answered, or say that service and client do not understand each other."""
    try:
        return shape.validate_json(json)
    except ValidationError as error:
        raise InvalidResponse(f"The answer to {route} has another shape than this client knows: {error}") from None


def path_params(machine: MachineName) -> dict[str, str]:
    """Return what a machine fills into a path."""
    return (MachineId.parse(machine) if isinstance(machine, str) else machine)._asdict()


def _given(headers: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if value is not None}


def _written(value: str | float | datetime | Enum) -> str:
    """Write a parameter; a moment must know its zone."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone; give it one, like datetime.now(UTC).")
        return isoformat(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.value if isinstance(value, Enum) else value)
