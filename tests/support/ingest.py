"""Messages of an agent, and the ingest of them without a broker."""

import json
from datetime import timedelta
from typing import Any

from service.app.stores import Stores
from service.ingest.service import IncomingMessage, IngestBatch, TimePolicy, commit
from service.machines.store import MachineCache
from service.messaging.mqtt_client import MqttMessage
from tests.service.conftest import EPOCH, NOW
from wire.timestamps import isoformat

EVENTS = "alarmcast/v1/padova/filler-1/events"


def take(stores: Stores, *bodies: bytes, topic: str = EVENTS) -> None:
    intake = IngestBatch(NOW, TimePolicy(), MachineCache(stores.machines))
    for body in bodies:
        intake.add(IncomingMessage(topic, body))
    commit(intake, recorder=stores.events)


def event(seq: int, **changes: Any) -> dict[str, Any]:
    return {"seq": seq, "code": 139, "at": isoformat(NOW - timedelta(minutes=seq)), **changes}


def batch(*rows: object) -> bytes:
    return json.dumps({"epoch": str(EPOCH), "events": list(rows)}).encode()


class RecordingLink:
    """Stands where the broker's connection stands, and remembers what was said over it."""

    def __init__(self) -> None:
        self.acked: list[int] = []
        self.published: list[str] = []
        self.payloads: list[bytes] = []

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        assert payload
        assert not retain
        self.published.append(topic)
        self.payloads.append(payload)

    def ack(self, delivery: MqttMessage) -> None:
        self.acked.append(delivery.mid)
