"""At the door of the pages: whoever comes in by it asks as themselves and from where they are."""

import asyncio

from fastapi import Request

from service.app.service import Service
from service.app.stores import Stores
from service.auth.authenticator import LOCAL
from service.machines.models import Machine
from service.page.changes import PageChanges
from service.page.layout import PageContext
from service.page.page_auth import PageAuth
from tests.service.conftest import FILLER
from wire.enums import Role
from wire.rest.auth import SESSION_COOKIE

PASSWORD = "four unrelated plain words"  # noqa: S105


def visit(token: str, address: str) -> Request:
    cookie = (b"cookie", f"{SESSION_COOKIE}={token}".encode())
    return Request({"type": "http", "path": "/", "query_string": b"", "headers": [cookie], "client": (address, 5)})


def test_what_is_done_on_a_page_is_in_the_book_with_where_its_visitor_is(
    service: Service, stores: Stores, filler: Machine
) -> None:
    service.auth.users.add_user("maria", Role.OPERATOR, None, password=PASSWORD, by=LOCAL)
    token = service.auth.login.login("maria", PASSWORD, origin="203.0.113.7").token

    async def acknowledge() -> None:
        reception = PageAuth(
            service.internal_client,
            lambda sites: service.internal_client(service.auth.issue_page_token(sites), "here"),
            PageChanges(service.bus),
        )
        told = await reception.context_for(visit(token, "203.0.113.7"))
        assert isinstance(told, PageContext)
        await told.client.acknowledgements.acknowledge(FILLER, code=139, note=None)
        reception.close()

    asyncio.run(acknowledge())
    (deed,) = stores.audit.newest(1)
    assert (deed.actor, deed.origin, str(filler.id) in deed.subject) == ("maria", "203.0.113.7", True)
