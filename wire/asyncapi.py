"""The contract as AsyncAPI 3, made from the models: ``python -m wire.asyncapi > docs/reference/asyncapi.json``."""

import json
import sys
from typing import Any

from pydantic import BaseModel

from wire.acks import Ack
from wire.codec import MAX_BYTES
from wire.events import EventBatch
from wire.forecasts import PublishedForecast
from wire.identity import ID_PATTERN
from wire.state import AgentState
from wire.topics import PREFIX, Channel

_SCHEMAS = "#/components/schemas/"
_SPOKEN: dict[Channel, tuple[type[BaseModel], str, bool, str]] = {
    Channel.EVENTS: (EventBatch, "agent", False, "Events and gaps, resent until an ack names them."),
    Channel.ACKS: (Ack, "service", False, "What is committed; only this lets an agent forget."),
    Channel.STATE: (AgentState, "agent", True, "How the agent is; also its last will."),
    Channel.FORECAST: (
        PublishedForecast,
        "service",
        True,
        "The newest forecast, as far as it fits.",
    ),
}


def document() -> dict[str, Any]:
    """Return the whole document."""
    channels, operations, messages = {}, {}, {}
    schemas: dict[str, Any] = {}
    for channel, (model, sender, retained, summary) in _SPOKEN.items():
        name = model.__name__
        schema = model.model_json_schema(ref_template=_SCHEMAS + "{model}")
        schemas |= schema.pop("$defs", {}) | {name: schema}
        messages[name] = {
            "name": name,
            "contentType": "application/json",
            "summary": summary,
            "payload": {"$ref": _SCHEMAS + name},
        }
        channels[channel.value] = {
            "address": f"{PREFIX}/{{site}}/{{machine}}/{channel.value}",
            "parameters": {key: {"$ref": f"#/components/parameters/{key}"} for key in ("site", "machine")},
            "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        }
        operations[f"{sender}-sends-{channel.value}"] = {
            # AsyncAPI takes the view of the service: it receives what the agent sends.
            "action": "send" if sender == "service" else "receive",
            "channel": {"$ref": f"#/channels/{channel.value}"},
            "summary": summary,
            "bindings": {"mqtt": {"qos": 1, "retain": retained, "bindingVersion": "0.2.0"}},
        }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Alarmcast wire contract",
            "version": "1.0.0",
            "description": f"JSON, UTF-8, at most {MAX_BYTES} bytes a message. Unknown fields are ignored. "
            "The identity of an event is (site, machine, epoch, seq); the topic alone says who speaks.",
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {
            "parameters": {
                "site": {"description": f"The plant, {ID_PATTERN}"},
                "machine": {"description": f"The machine, {ID_PATTERN}"},
            },
            "messages": messages,
            "schemas": schemas,
        },
    }


def text() -> str:
    """Return the document as it stands in the repository."""
    return json.dumps(document(), indent=2, sort_keys=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
