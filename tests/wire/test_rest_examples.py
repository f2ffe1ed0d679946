"""The examples of the API's shapes are real: each can be read as the shape and is written the same again."""

import json
import pkgutil
from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel

import wire.rest
from wire import forecasts

MODULES = [
    forecasts,
    *(import_module(f"wire.rest.{found.name}") for found in pkgutil.iter_modules(wire.rest.__path__)),
]


def shown(model: type[BaseModel]) -> list[Any]:
    extra = model.model_config.get("json_schema_extra")
    examples = extra.get("examples", []) if isinstance(extra, dict) else []
    assert isinstance(examples, list)
    return examples


SHAPES = {
    value.__name__: value
    for module in MODULES
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, BaseModel) and shown(value)
}


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_an_example_is_what_the_service_could_really_say(name: str) -> None:
    for example in shown(SHAPES[name]):
        read = SHAPES[name].model_validate_json(json.dumps(example))
        assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == example
