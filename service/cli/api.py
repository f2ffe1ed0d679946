"""The API, wherever it is: in the service that holds the database, or in this process if nobody does."""

import asyncio
from typing import Any

import httpx

from service.bootstrap import Service, open_stores
from service.errors import DatabaseInUse, InputRejected, Unavailable
from service.settings import Settings


def call(settings: Settings, method: str, path: str, **request: Any) -> httpx.Response:
    """Send one request and return its answer; a problem becomes the error it describes."""
    try:
        with open_stores(settings) as stores:
            answer = asyncio.run(_call_here(Service(settings, stores), method, path, request))
    except DatabaseInUse as error:
        if error.url is None:
            raise
        try:
            answer = httpx.request(method, f"{error.url}{path}", timeout=60, **request)
        except httpx.HTTPError as failure:
            raise Unavailable(f"The service at {error.url} does not answer: {failure}.") from None
    if answer.is_error:
        raise InputRejected(_detail(answer))
    return answer


async def _call_here(service: Service, method: str, path: str, request: dict[str, Any]) -> httpx.Response:
    transport = httpx.ASGITransport(service.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        return await client.request(method, path, **request)


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The service answered {answer.status_code}."
