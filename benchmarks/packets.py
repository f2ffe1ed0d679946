"""MQTT 3.1.1 as bytes, as much of it as a load generator needs.

Written and read by hand, because a client library takes as long for a message as the service under test, and on
two cores it would be what is measured.
"""

from collections.abc import Iterator
from typing import NamedTuple

CONNACK, PUBLISH, PUBACK, SUBACK = 0x20, 0x30, 0x40, 0x90
MESSAGE_IDS = 65_535
_CONNECT, _SUBSCRIBE, _QOS_1, _RETAIN = 0x10, 0x82, 0x02, 0x01
_CLEAN_SESSION, _NO_KEEPALIVE = b"\x02", b"\x00\x00"


class Message(NamedTuple):
    """What a PUBLISH brings; ``id`` is None at QoS 0, where no answer is expected."""

    topic: str
    id: int | None
    payload: bytes


def connect(client_id: str) -> bytes:
    """Return the packet that asks for a clean session without keep-alive."""
    return _packet(_CONNECT, b"\x00\x04MQTT\x04" + _CLEAN_SESSION + _NO_KEEPALIVE + _text(client_id))


def publish(topic: str, payload: bytes, message_id: int, *, retain: bool = False) -> bytes:
    """Return a message at QoS 1."""
    kind = PUBLISH | _QOS_1 | (_RETAIN if retain else 0)
    return _packet(kind, _text(topic) + message_id.to_bytes(2, "big") + payload)


def puback(message_id: int) -> bytes:
    """Return the answer to a message at QoS 1."""
    return _packet(PUBACK, message_id.to_bytes(2, "big"))


def subscribe(filters: list[str], message_id: int) -> bytes:
    """Return the wish to hear these topics at QoS 1."""
    return _packet(_SUBSCRIBE, message_id.to_bytes(2, "big") + b"".join(_text(one) + b"\x01" for one in filters))


def message(kind: int, body: bytes) -> Message:
    """Read the body of a PUBLISH packet."""
    end = 2 + int.from_bytes(body[:2], "big")
    topic = body[2:end].decode()
    if kind & 0x06 == 0:
        return Message(topic, None, body[end:])
    return Message(topic, int.from_bytes(body[end : end + 2], "big"), body[end + 2 :])


class Reader:
    """Cuts a stream into packets, however it was cut on its way."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def packets(self, received: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the first byte and the body of every packet that is whole by now."""
        self._rest += received
        place = 0
        while (found := _length(self._rest, place + 1)) is not None:
            body, size = found
            if body + size > len(self._rest):
                break
            yield self._rest[place], bytes(self._rest[body : body + size])
            place = body + size
        del self._rest[:place]


def _length(stream: bytearray, place: int) -> tuple[int, int] | None:
    """Return where a body begins and how long it is, or None where not even that has arrived."""
    size = shift = 0
    while place < len(stream):
        byte = stream[place]
        size |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return place, size
    return None


def _packet(kind: int, body: bytes) -> bytes:
    length, rest = bytearray(), len(body)
    while rest > 127:
        length.append(rest % 128 | 128)
        rest //= 128
    return bytes([kind, *length, rest]) + body


def _text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()
