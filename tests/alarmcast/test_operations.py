"""Nothing of the API is missing in the client, and the client asks for nothing that the API does not have."""

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from alarmcast import Client
from alarmcast.endpoint import Endpoint, IteratorEndpoint, Resource
from service.app.service import Service
from wire.rest.histories import HistoryColumns

MACHINE = {"site", "machine"}  # in a path they are one argument of the client, site/machine
GROUPS = {"columns": set(HistoryColumns.model_fields), "code_map": {"code_map_bytes"}}  # several in one argument


class Method(NamedTuple):
    """A method of the client, the operation that it calls, what it takes and what it says of itself."""

    name: str
    operation: tuple[str, str]
    arguments: set[str]
    words: str


def methods(client: Client) -> Iterator[Method]:
    for noun, found in vars(client).items():
        if isinstance(found, Resource):
            for name, declared in vars(type(found)).items():
                if isinstance(declared, Endpoint | IteratorEndpoint):
                    signature = inspect.signature(declared.build)
                    arguments = {argument.removeprefix("is_") for argument in signature.parameters} - {"self"}
                    yield Method(f"{noun}.{name}", declared.route, arguments, inspect.getdoc(declared.build) or "")


@pytest.fixture
def operations(service: Service) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method.upper(), path): operation
        for path, found in service.app.openapi()["paths"].items()
        for method, operation in found.items()
    }


def test_every_operation_has_a_method_and_every_method_an_operation(
    client: Client, operations: dict[tuple[str, str], dict[str, Any]]
) -> None:
    assert {method.operation for method in methods(client)} == set(operations)


def test_every_parameter_can_be_given_and_none_is_made_up(
    client: Client, operations: dict[tuple[str, str], dict[str, Any]]
) -> None:
    for method in methods(client):
        parameters = operations[method.operation].get("parameters", [])
        given = {one["name"] for one in parameters if one["in"] == "query"}
        filled = {one["name"] for one in parameters if one["in"] == "path"}
        if filled >= MACHINE:
            filled -= {"site"}
        grouped = {name for group in method.arguments & set(GROUPS) for name in GROUPS[group]}
        assert method.arguments | grouped >= given | filled, method.name
        if "requestBody" not in operations[method.operation]:
            assert method.arguments == given | filled, method.name


def test_every_method_says_what_it_does(client: Client) -> None:
    for method in methods(client):
        assert method.words.endswith("."), method.name
