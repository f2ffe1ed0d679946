"""The published document is the contract, not a memory of it."""

import json
from pathlib import Path
from typing import Any

from wire import asyncapi
from wire.topics import Channel

FILE = Path(__file__).parents[2] / "docs" / "reference" / "asyncapi.json"


def test_the_document_in_the_repository_is_what_the_models_say() -> None:
    assert FILE.read_text() == asyncapi.text(), "run: python -m wire.asyncapi > docs/reference/asyncapi.json"


def test_every_channel_of_the_contract_is_documented() -> None:
    document = asyncapi.document()
    assert document["asyncapi"] == "3.0.0"
    assert set(document["channels"]) == {channel.value for channel in Channel}
    assert len(document["operations"]) == len(Channel)


def test_every_reference_in_the_document_leads_somewhere() -> None:
    document = asyncapi.document()

    def references(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if "$ref" in node else []
            return own + [found for value in node.values() for found in references(value)]
        return [found for value in node for found in references(value)] if isinstance(node, list) else []

    for reference in set(references(json.loads(asyncapi.text()))):
        target: Any = document
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        assert target
