"""Query parameters that an address does not know are refused: a misspelt filter must not give everything."""

from collections.abc import Iterator
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute

from service.errors import InputRejected

_PREFIX = "/v1/"  # probes, metrics and documentation take whatever a monitor or a browser adds


async def known_parameters(request: Request) -> None:
    """Run before every endpoint: raise :class:`InputRejected` for a query parameter that it does not take."""
    route = request.scope["route"]
    if not request.url.query or not isinstance(route, APIRoute) or not route.path.startswith(_PREFIX):
        return
    known = sorted({str(one.alias) for one in _query_fields(route.dependant)})
    for name in request.query_params:
        if name not in known:
            shown = "".join(one if one.isprintable() else "?" for one in name[:50])
            takes = f"the parameters {', '.join(known)}" if known else "no parameters"
            raise InputRejected(
                f"There is no query parameter {shown!r} here; this address takes {takes}.",
                pointer=f"query/{shown}",
            )


def _query_fields(dependant: Any) -> Iterator[Any]:
    yield from dependant.query_params
    for one in dependant.dependencies:
        yield from _query_fields(one)
