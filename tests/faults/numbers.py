"""One machine whose numbers are chosen to harm: its acks must not stop the others'."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import uuid4

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.conftest import wait_until
from tests.faults.environment import FaultEnvironment, insist, register
from tests.faults.registry import Effort, fault
from wire.events import MAX_EVENTS
from wire.identity import MachineId
from wire.timestamps import isoformat
from wire.topics import Channel, topic

_MACHINE = "plant/scattered"
_MESSAGES = 6
_HIGHEST = 2**63 - 1


@fault("numbers scattered by one machine", quick=Effort(3), full=Effort(30))
def scattered(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """A machine's numbers leave gaps, so that each is a range of its own in the ack."""
    with env.system(packet_limit=70_000) as system:
        register(system.plant, _MACHINE)
        system.recovered()
        for _ in range(effort.runs):
            acked = _send_scattered(system.plant.broker.port)
            insist(acked == _MESSAGES * MAX_EVENTS, f"all scattered events are acked, not {acked}")
            yield system.recovered()
        insist(
            "oversize" not in (system.plant.broker.folder / "mosquitto.log").read_text(),
            "no message is above the broker's limit",
        )


def _send_scattered(port: int) -> int:
    """Publish as the machine, and return how many of its events were acked."""
    machine, epoch, at = MachineId.parse(_MACHINE), str(uuid4()), isoformat(datetime.now(UTC))
    acked: list[int] = []
    client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.on_connect = lambda client, *_: client.subscribe(topic(machine, Channel.ACKS), qos=1)
    client.on_message = lambda _client, _data, message: acked.extend(
        last - first + 1 for first, last in json.loads(message.payload)["seqs"]
    )
    subscribed: list[int] = []
    client.on_subscribe = lambda _client, _data, mid, *_: subscribed.append(mid)
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        wait_until(lambda: subscribed, "the machine is subscribed", 30)
        for message in range(_MESSAGES):
            numbers = (_HIGHEST - 2 * (MAX_EVENTS * message + place) for place in range(MAX_EVENTS))
            events = [{"seq": number, "code": 1, "at": at} for number in numbers]
            body = json.dumps({"epoch": epoch, "events": events}, separators=(",", ":"))
            client.publish(topic(machine, Channel.EVENTS), body, qos=1)
        wait_until(lambda: sum(acked) >= _MESSAGES * MAX_EVENTS, "scattered events are acked", 60)
    finally:
        client.disconnect()
        client.loop_stop()
    return sum(acked)
