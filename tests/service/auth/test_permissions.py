"""Every route, every role, every site: who gets in is what the table says, and nothing else."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.auth.middleware import check_permissions_complete
from service.http.permissions import PERMISSIONS, RouteScope, Rule, Table
from tests.support.api_client import Visitor, visitor
from tests.support.two_sites import NAMES, seed
from wire.enums import Role

OWN, OTHER = "padova", "lyon"


class Who(NamedTuple):
    """Somebody: a role or none, for one site or for all."""

    role: Role | None
    everywhere: bool

    def __str__(self) -> str:
        return "stranger" if self.role is None else f"{self.role.value} of {'all' if self.everywhere else OWN}"


EVERYBODY = [Who(None, everywhere=False), *(Who(role, where) for role in Role for where in (True, False))]


def walks() -> Iterator[tuple[str, Rule, str]]:
    """Yield every line of the table, one that names a site for both sites."""
    for line, rule in PERMISSIONS.items():
        for site in (OWN, OTHER) if "{site}" in line else (OWN,):
            yield line, rule, site


def expected(who: Who, rule: Rule, site: str) -> set[int] | None:
    """Return how the guard answers, None if it lets them in."""
    if rule.scope is RouteScope.OPEN:
        return None
    if who.role is None:
        return {401}
    if not who.role.covers(rule.least) or (rule.scope is RouteScope.FLEET and not who.everywhere):
        return {403}
    return {404} if rule.scope is RouteScope.SITE and site == OTHER and not who.everywhere else None


def asked(client: Visitor, line: str, site: str) -> int:
    method, _, path = line.partition(" ")
    # Without a body: whoever gets in is told that one is missing, and nothing is changed.
    return client.ask(method, path.format(**NAMES, site=site)).status_code


@pytest.mark.parametrize("who", EVERYBODY, ids=str)
def test_who_gets_in_is_what_the_table_says(service: Service, stores: Stores, who: Who) -> None:
    seed(service, stores)
    service.feed.close()  # or the streams would never end
    client = visitor(service, who.role, None if who.everywhere else [OWN])
    wrong = []
    for line, rule, site in walks():
        status, told = asked(client, line, site), expected(who, rule, site)
        is_right = status in told if told else status not in (401, 403, 500)
        if not is_right:
            wrong.append(f"{line} of {site}: {status} instead of {told or 'being let in'}")
    assert wrong == []


def test_a_key_that_is_not_known_is_a_stranger_everywhere(shared_service: Service) -> None:
    liar = Visitor(shared_service, "ack_000000000000_" + "0" * 64)
    for line, rule, site in walks():
        if rule.scope is not RouteScope.OPEN:
            assert asked(liar, line, site) == 401, line
    assert liar.ask("GET", "/livez").status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/v1/nothing", "/v1/fleet/", "//v1/fleet", "/v1/machines/a/b/c"]
)
def test_to_a_stranger_what_is_not_there_looks_like_what_is(shared_service: Service, path: str) -> None:
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"):
        assert visitor(shared_service, None).ask(method, path).status_code == 401
    assert visitor(shared_service, Role.ADMIN).ask("GET", path).status_code == 404


def test_another_method_of_a_known_path_opens_nothing(shared_service: Service) -> None:
    for line in PERMISSIONS:
        path = line.partition(" ")[2]
        if f"PUT {path}" not in PERMISSIONS and "static" not in path:
            filled = path.format(**NAMES, site=OWN)
            assert visitor(shared_service, None).ask("PUT", filled).status_code == 401, path
    assert visitor(shared_service, Role.ADMIN).ask("PUT", "/v1/fleet").status_code == 405


def test_a_route_without_a_line_or_a_line_without_a_route_does_not_start(service: Service) -> None:
    table = dict(PERMISSIONS)
    del table["GET /docs"]
    with pytest.raises(RuntimeError, match=r"GET /docs has no entry in service/http/permissions.py"):
        check_permissions_complete(service.app, [], Table(table))
    with pytest.raises(RuntimeError, match="there is no such route"):
        check_permissions_complete(service.app, [], Table())


def test_a_route_that_was_added_behind_the_guards_back_answers_nobody(service: Service) -> None:
    @service.app.get("/v1/backdoor")
    def backdoor() -> str:
        return "the secret"

    answer = Visitor(service, service.key).ask("GET", "/v1/backdoor")
    assert answer.status_code == 500
    assert "the secret" not in answer.text
    assert visitor(service, None).ask("GET", "/v1/backdoor").status_code == 401


def test_the_document_says_who_may_and_how_those_are_answered_who_may_not(service: Service) -> None:
    document = service.app.openapi()
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            is_open = PERMISSIONS[f"{method.upper()} {path}"].scope is RouteScope.OPEN
            assert ("security" in operation) is not is_open, path
            assert "429" in operation["responses"]
            assert is_open or {"401", "403"} <= set(operation["responses"]), path


def test_the_documentation_is_shown_to_strangers_only_if_told(service: Service, stores: Stores) -> None:
    assert visitor(service, None).ask("GET", "/docs").status_code == 401
    open_house = Service(service.settings.model_copy(update={"open_docs": True}), stores)
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert visitor(open_house, None).ask("GET", path).status_code == 200
    assert visitor(open_house, None).ask("GET", "/v1/fleet").status_code == 401
