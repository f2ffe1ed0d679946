"""The broker's own counters: a broker drops messages silently and tells it only here, under ``$SYS``."""

import time
from collections.abc import Callable

_DROPPED = "$SYS/broker/publish/messages/dropped"
_STORED = "$SYS/broker/store/messages/count"
_CLIENTS = "$SYS/broker/clients/connected"
TOPICS = (_DROPPED, _STORED, _CLIENTS)
_NAMES = {_DROPPED: "broker_dropped", _STORED: "broker_queued", _CLIENTS: "broker_clients"}
_REMEMBERS = 3600.0  # seconds for which a drop is worth a warning


class BrokerStats:
    """Remembers the last figures and when messages were last dropped."""

    def __init__(self, *, queue_alarm: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._queue_alarm, self._monotonic = queue_alarm, monotonic
        self._figures: dict[str, int] = {}
        self._dropped, self._dropped_at = 0, -_REMEMBERS
        self._forgot_at = -_REMEMBERS
        self.oversize = 0  # messages that were not published because they are above the limit
        self._oversize_topic, self._oversize_at = "", -_REMEMBERS

    def update(self, topic: str, payload: bytes) -> None:
        """Take one figure; what is no number is none."""
        if topic not in _NAMES or not payload.strip().isdigit():
            return
        value, before = int(payload), self._figures.get(topic)
        if topic == _DROPPED and before is not None and value != before:
            # A broker that was started again counts from nought.
            self._dropped += value - before if value > before else value
            if value:
                self._dropped_at = self._monotonic()
        self._figures[topic] = value

    def session_lost(self) -> None:
        """Note that the broker has forgotten who we are, and with it what it kept for us."""
        self._forgot_at = self._monotonic()

    def refused_oversize(self, topic: str) -> None:
        """Count a message of ours that was not published because it is too large for the broker."""
        self.oversize += 1
        self._oversize_topic, self._oversize_at = topic, self._monotonic()

    @property
    def counts(self) -> dict[str, int]:
        """The figures by name."""
        figures = {_NAMES[topic]: value for topic, value in self._figures.items()}
        return figures | ({"oversize_publishes": self.oversize} if self.oversize else {})

    def warnings(self) -> dict[str, str]:
        """Say what a person should look at."""
        warnings, now = {}, self._monotonic()
        if now - self._dropped_at < _REMEMBERS:
            warnings["broker_dropped"] = (
                f"The broker has dropped {self._dropped} messages, the last within the hour; agents send them "
                "again. Raise max_queued_messages and max_queued_bytes in its configuration."
            )
        queued = self._figures.get(_STORED, 0)
        if queued > self._queue_alarm:
            warnings["broker_queue"] = (
                f"The broker holds {queued} messages; the service may be too slow, or was down."
            )
        if now - self._forgot_at < _REMEMBERS:
            warnings["broker_session"] = (
                "The broker has forgotten our session within the hour, and what it kept for us; agents send it "
                "again. See whether its disk or its memory file was damaged, or persistence is off."
            )
        if now - self._oversize_at < _REMEMBERS:
            warnings["oversize_publish"] = (
                f"{self.oversize} messages were not published because they are too large for the broker, the last "
                f"to {self._oversize_topic}. Raise max_packet_size in the broker's configuration to 70000 or "
                "more; if it is that large, report this as a defect."
            )
        return warnings
