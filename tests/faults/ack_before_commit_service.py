"""A service that acks before it commits, to prove that the suite would notice: run like ``python -m service``.

Only tests start this; the product has no such switch.
"""

import time

from service.__main__ import main
from service.ingest.service import IncomingMessage, IngestBatch, commit
from service.ingest.thread import Ingester
from service.machines.events import WriteResult
from service.messaging.mqtt_client import MqttMessage
from wire.codec import encode
from wire.topics import Channel, topic

_HASTE = 2.0  # seconds in which what was acked is not committed: nearly always


def _ack_then_commit(self: Ingester, deliveries: list[MqttMessage]) -> None:
    intake = IngestBatch(self._clock.now(), self._policy, self._registry)
    for delivery in deliveries:
        intake.add(IncomingMessage(delivery.topic, delivery.payload, delivery.retained))
    assert self.link
    for machine, ack in intake.acks(WriteResult(0, 0, 0)):
        self.link.publish(topic(machine, Channel.ACKS), encode(ack))
    for delivery in deliveries:
        self.link.ack(delivery)
    time.sleep(_HASTE)
    commit(intake, recorder=self._recorder)


if __name__ == "__main__":
    Ingester._process = _ack_then_commit  # type: ignore[method-assign]  # noqa: SLF001
    main()
