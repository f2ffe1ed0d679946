"""How a noun declares its calls: one function each, which a client calls and an async client awaits.

An ``Endpoint`` has one answer; ``Items`` come one by one, out of a stream or page after page. Both see from the
noun they are looked up on which of the two senders carries them, and mypy sees it too.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from pydantic import TypeAdapter

from alarmcast.errors import validation_error
from alarmcast.events import EventReader
from alarmcast.requests import (
    Pages,
    PageT,
    Reader,
    Request,
    RequestSpec,
    Route,
    Stream,
    TypedRequest,
    parse_response,
)
from alarmcast.transport import AsyncTransport, Transport

P = ParamSpec("P")
T = TypeVar("T")
TransportT = TypeVar("TransportT", bound=Transport | AsyncTransport)


class Resource(Generic[TransportT]):
    """A part of the API."""

    def __init__(self, sender: TransportT) -> None:
        self.sender = sender


class Endpoint(Generic[P, T]):
    """A call with one answer, whose route stands in the API's OpenAPI document."""

    def __init__(self, route: Route, build: Callable[Concatenate[Any, P], TypedRequest[T]]) -> None:
        self.route, self.build = route, build

    @overload
    def __get__(self, noun: None, owner: object = None) -> Self: ...
    @overload
    def __get__(self, noun: Resource[Transport], owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, noun: Resource[AsyncTransport], owner: object = None
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, noun: Resource[Any] | None, owner: object = None) -> Any:
        """Return what sends the call."""
        if noun is None:
            return self

        @wraps(self.build)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return noun.sender.send(self.build(noun, *args, **kwargs))

        return call


class IteratorEndpoint(Generic[P, T]):
    """A call whose answers come one by one; close the iterator to hang up before the end."""

    def __init__(self, route: Route, build: Callable[Concatenate[Any, P], Stream[T] | Pages[Any, T]]) -> None:
        self.route, self.build = route, build

    @overload
    def __get__(self, noun: None, owner: object = None) -> Self: ...
    @overload
    def __get__(
        self, noun: Resource[Transport], owner: object = None
    ) -> Callable[P, Generator[T, None, None]]: ...
    @overload
    def __get__(
        self, noun: Resource[AsyncTransport], owner: object = None
    ) -> Callable[P, AsyncGenerator[T, None]]: ...
    def __get__(self, noun: Resource[Any] | None, owner: object = None) -> Any:
        """Return what begins to iterate."""
        if noun is None:
            return self

        @wraps(self.build)
        def items(*args: P.args, **kwargs: P.kwargs) -> Any:
            return noun.sender.items(self.build(noun, *args, **kwargs))

        return items


def operation(
    named: str, shape: type[T], *, seconds: float | None = None, also: int | None = None
) -> Callable[[Callable[Concatenate[Any, P], RequestSpec]], Endpoint[P, T]]:
    """Declare ``METHOD /path``, whose answer has this shape; see :class:`~alarmcast.requests.TypedRequest`."""
    route, adapter = Route(*named.split()), TypeAdapter(shape)

    def declare(ask: Callable[Concatenate[Any, P], RequestSpec]) -> Endpoint[P, T]:
        @wraps(ask)
        def build(noun: Any, /, *args: P.args, **kwargs: P.kwargs) -> TypedRequest[T]:
            return TypedRequest(_request(route, ask, noun, *args, **kwargs), adapter, seconds, also)

        return Endpoint(route, build)

    return declare


def pages(endpoint: Endpoint[P, PageT], items: Callable[[PageT], Sequence[T]]) -> IteratorEndpoint[P, T]:
    """Declare what is on a page and on all pages after it, out of the endpoint that answers one page."""

    @wraps(endpoint.build)
    def build(noun: Any, /, *args: P.args, **kwargs: P.kwargs) -> Pages[PageT, T]:
        return Pages(endpoint.build(noun, *args, **kwargs), items)

    return IteratorEndpoint(endpoint.route, build)


def events(
    path: str, shapes: Mapping[str, type[T]], *, endless: bool = False
) -> Callable[[Callable[Concatenate[Any, P], RequestSpec]], IteratorEndpoint[P, T]]:
    """Declare a stream of server-sent events: the shape of each by its name; other names pass unheard.

    One that is ``endless`` raises ``Unreachable`` when it ends all the same.
    """
    route, adapters = Route("GET", path), {name: TypeAdapter(shape) for name, shape in shapes.items()}

    def reader() -> Callable[[bytes], Iterator[T]]:
        read = EventReader()
        return lambda chunk: (
            parse_response(adapters[event.name], event.data, route)
            for event in read(chunk)
            if event.name in adapters
        )

    return _stream(route, reader, endless=endless)


def download(path: str) -> Callable[[Callable[Concatenate[Any, P], RequestSpec]], IteratorEndpoint[P, bytes]]:
    """Declare a file that is given piece by piece."""
    return _stream(Route("GET", path), lambda: lambda chunk: [chunk])


def _stream(
    route: Route, reader: Reader[T], *, endless: bool = False
) -> Callable[[Callable[Concatenate[Any, P], RequestSpec]], IteratorEndpoint[P, T]]:
    def declare(ask: Callable[Concatenate[Any, P], RequestSpec]) -> IteratorEndpoint[P, T]:
        @wraps(ask)
        def build(noun: Any, /, *args: P.args, **kwargs: P.kwargs) -> Stream[T]:
            return Stream(_request(route, ask, noun, *args, **kwargs), reader, endless)

        return IteratorEndpoint(route, build)

    return declare


def _request(
    route: Route, ask: Callable[Concatenate[Any, P], RequestSpec], noun: Any, *args: P.args, **kwargs: P.kwargs
) -> Request:
    """Return the request; what cannot even be written is refused as the service would refuse it."""
    try:
        return Request.build(route, ask(noun, *args, **kwargs))
    except ValueError as error:
        raise validation_error(error, route.path) from None
