"""Refuse unknown query parameters: a misspelt filter must not return everything."""

from collections.abc import Iterator
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute

from service.errors import InputRejected

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
