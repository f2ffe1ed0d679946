"""A load of alarm events, encoded before any clock runs: as MQTT packets, and as the rows they become.

The packets are written to the broker's socket as they are: a client library that encodes each message would
take as long as the subscriber under test, and on two cores it would be what is measured.
"""

import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Thread
from uuid import UUID, uuid4

from benchmarks.seeded_store import machine_ids
from benchmarks.servers import HOST
from wire.codec import encode
from wire.events import AlarmEvent, EventBatch
from wire.identity import MachineId
from wire.timestamps import to_us
from wire.topics import Channel, topic

_CONNECT, _PUBLISH_QOS_1 = 0x10, 0x32
_PUBACK_BYTES = _CONNACK_BYTES = 4
_MESSAGE_IDS = 65_535
_CODES = 150
_EVERY = timedelta(minutes=10)


@dataclass(frozen=True)
class Load:
    """So many messages of so many events, the machines taking turns."""

    messages: int
    events_per_message: int
    machines: int
    epochs: dict[MachineId, UUID] = field(default_factory=dict)
    batches: list[tuple[MachineId, EventBatch]] = field(default_factory=list)
    packets: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        ids = machine_ids(self.machines)
        self.epochs.update({machine: uuid4() for machine in ids})
        # Each machine raises an alarm every ten minutes and its last one just now, as after a long absence.
        first = datetime.now(UTC) - _EVERY * (self.events // self.machines + self.events_per_message)
        for number in range(self.messages):
            machine = ids[number % self.machines]
            before = number // self.machines * self.events_per_message
            seqs = range(before + 1, before + self.events_per_message + 1)
            events = [AlarmEvent(seq=seq, code=seq * 7 % _CODES, at=first + _EVERY * seq) for seq in seqs]
            batch = EventBatch(epoch=self.epochs[machine], events=events)
            self.batches.append((machine, batch))
            packet = _publish(topic(machine, Channel.EVENTS), encode(batch), number % _MESSAGE_IDS + 1)
            self.packets.extend(packet)

    @property
    def events(self) -> int:
        """How many events there are in all."""
        return self.messages * self.events_per_message

    def rows(self) -> list[tuple[int, ...]]:
        """Return the rows of the table of events, in the order in which they arrive."""
        places = {machine: place for place, machine in enumerate(self.epochs, start=1)}
        received = to_us(datetime.now(UTC))
        return [
            (places[machine], event.seq, places[machine], event.code, to_us(event.at), received, 0)
            for machine, batch in self.batches
            for event in batch.events
        ]

    def push(self, port: int) -> None:
        """Hand everything to the broker at QoS 1 and return when it has acknowledged all of it."""
        with socket.create_connection((HOST, port), timeout=60) as broker:
            broker.sendall(_packet(_CONNECT, b"\x00\x04MQTT\x04\x02\x00\x3c" + _text("benchmark-load")))
            _read(broker, _CONNACK_BYTES)
            sender = Thread(target=broker.sendall, args=(self.packets,))
            sender.start()
            _read(broker, _PUBACK_BYTES * self.messages)
            sender.join()


def _publish(name: str, payload: bytes, message_id: int) -> bytes:
    return _packet(_PUBLISH_QOS_1, _text(name) + message_id.to_bytes(2, "big") + payload)


def _packet(kind: int, body: bytes) -> bytes:
    """Return an MQTT 3.1.1 packet: its kind, its length in base 128, its body."""
    length, rest = bytearray(), len(body)
    while rest > 127:
        length.append(rest % 128 | 128)
        rest //= 128
    return bytes([kind, *length, rest]) + body


def _text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()


def _read(connection: socket.socket, size: int) -> None:
    while size > 0:
        received = len(connection.recv(min(size, 65_536)))
        if received == 0:
            raise ConnectionError("the broker closed the connection of the load")
        size -= received
