"""Clients of the REST API of an app in this process."""

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import httpx

import alarmcast
from alarmcast import InProcess
from service.app.service import Service
from service.auth.authenticator import LOCAL
from wire.enums import Role

BASE = "/v1/machines/padova/filler-1"


class Client(alarmcast.Client):
    """The client of the app in this process; ``request`` and ``get`` also ask what it would not."""

    def __init__(self, service: Service) -> None:
        super().__init__("http://test", key=service.key, transport=InProcess(service.app, raise_defects=False))

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.http.request(method, path, **more)

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.request("GET", path, params=query)


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["detail"].endswith((".", "FILE")) or "alarmcast admin enrol" in body["detail"]
    return body


class Visitor(alarmcast.Client):
    """Somebody who asks the app in this process, with a key or without."""

    def __init__(self, service: Service, key: str | None) -> None:
        super().__init__("http://here", key=key, transport=InProcess(service.app, raise_defects=False))

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.http.request(method, path, **more)


def visitor(service: Service, role: Role | None, sites: Iterable[str] | None = None) -> Visitor:
    """Return somebody in a role, or with None a stranger."""
    if role is None:
        return Visitor(service, None)
    own = None if sites is None else frozenset(sites)
    made = service.auth.users.add_key(f"k-{uuid4().hex[:8]}", role, own, ttl=None, by=LOCAL)
    return Visitor(service, made.token)
