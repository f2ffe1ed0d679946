"""The OpenAPI document says everything that somebody needs who has only the document."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from service.app.service import Service

Document = dict[str, Any]
PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
NOT_A_PROBLEM = {("check_readiness", "503")}  # it answers in its own shape, as whoever asks expects


@pytest.fixture
def document(service: Service) -> Document:
    return dict(json.loads(json.dumps(service.app.openapi())))


def operations(document: Document) -> Iterator[tuple[str, Document]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def resolved(document: Document, schema: Document) -> Document:
    if "$ref" in schema:
        return dict(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    return schema


def has_example(document: Document, content: Document) -> bool:
    """Say whether a reader sees an example: given beside the schema, in it, or in what it is a list of."""
    schema = resolved(document, content["schema"])
    if schema.get("type") == "array":
        return has_example(document, {"schema": schema["items"]})
    return bool(content.get("example") or content.get("examples") or schema.get("examples"))


def test_every_operation_has_a_name_that_reads_well_a_summary_a_description_and_a_tag(document: Document) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for where, operation in operations(document):
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", operation["operationId"]), where
        assert operation["summary"], where
        assert operation["description"].endswith("."), where
        assert len(operation["tags"]) == 1, where


def test_every_parameter_is_described(document: Document) -> None:
    missing = [
        f"{where} {parameter['name']}"
        for where, operation in operations(document)
        for parameter in operation.get("parameters", [])
        if not parameter.get("description")
    ]
    assert missing == []


def test_every_success_has_a_schema_and_an_example(document: Document) -> None:
    missing = []
    for where, operation in operations(document):
        good = {status: answer for status, answer in operation["responses"].items() if status < "300"}
        assert good, where
        for status, answer in good.items():
            contents = answer.get("content", {})
            assert contents or status == "204", where
            missing += [f"{where} {kind}" for kind, content in contents.items() if not content.get("schema")]
            missing += [
                f"{where} {kind} example"
                for kind, content in contents.items()
                if content.get("schema") and not has_example(document, content)
            ]
    assert missing == []


def test_every_body_has_a_schema_and_an_example(document: Document) -> None:
    missing = [
        f"{where} {kind}"
        for where, operation in operations(document)
        for kind, content in operation.get("requestBody", {}).get("content", {}).items()
        if not _body_is_shown(document, content)
    ]
    assert missing == []


def _body_is_shown(document: Document, content: Document) -> bool:
    schema = content["schema"]
    choices = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    return all(has_example(document, {**content, "schema": one}) for one in choices)


def test_every_error_is_a_problem(document: Document) -> None:
    for where, operation in operations(document):
        for status, answer in operation["responses"].items():
            if status >= "400" and (operation["operationId"], status) not in NOT_A_PROBLEM:
                assert answer["content"] == PROBLEM, f"{where} {status}"
                assert answer["description"], f"{where} {status}"


def test_whoever_can_ask_wrongly_is_told_how_that_is_answered(document: Document) -> None:
    for where, operation in operations(document):
        if operation.get("parameters") or operation.get("requestBody"):
            assert "422" in operation["responses"], where
        if "{" in where:
            assert "404" in operation["responses"], where


def test_shapes_have_short_names_and_are_described(document: Document) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert "__" not in name, f"two shapes have one name: {name}"
        assert schema.get("description"), name
