"""The thread that brings notices to webhooks: at least once, patiently, and no receiver waits for another."""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Lock

from service.messaging.background import BackgroundThread
from service.notifications.delivery_store import DeliveryStore
from service.notifications.webhook import DeliveryResult, WebhookDelivery, backoff, next_try
from service.notifications.webhook_client import WebhookClient
from service.notifications.webhook_service import body

log = logging.getLogger(__name__)

_POLL_INTERVAL_S = 0.5  # wall seconds between two looks for what is due
_LEASE = timedelta(minutes=1)  # longer than any attempt takes
MAX_WORKERS = 8
_GONE = "The receiver answered 410 Gone, so it is told nothing any more; enable the webhook when it is back."


class WebhookSender(BackgroundThread):
    """Delivers what the outbox says is due; one attempt at a time for each webhook.

    A receiver that fails is left alone for a while, however much waits for it: so many dead ones do not keep all
    hands busy. ``wall`` and ``chance`` are passed in, so that a test waits for nothing.
    """

    def __init__(
        self,
        outbox: DeliveryStore,
        post: WebhookClient,
        *,
        wall: Callable[[], datetime],
        plant: Callable[[], datetime],
        chance: Callable[[], float],
        pulse: float = _POLL_INTERVAL_S,
    ) -> None:
        super().__init__("courier")
        self._outbox, self._post, self._pulse = outbox, post, pulse
        self._wall, self._plant, self._chance = wall, plant, chance
        self._lock = Lock()
        self._busy: set[int] = set()
        self._resting: dict[int, datetime] = {}
        self._failures: dict[int, int] = {}  # in a row, by webhook
        self.delivered = self.failed = 0  # attempts

    def _run(self) -> None:
        with ThreadPoolExecutor(MAX_WORKERS, thread_name_prefix="courier") as hands:
            while not self._stopping.is_set():
                begun = 0
                try:
                    begun = self._send_out(hands)
                    self.complaint = None
                except Exception as error:  # noqa: BLE001 - told, and tried again
                    self._record_error(error)
                self._stopping.wait(self._pulse / 10 if begun else self._pulse)
            hands.shutdown(cancel_futures=True)  # what was not begun is due again after the next start

    def _send_out(self, hands: ThreadPoolExecutor) -> int:
        """Give the first due delivery of each webhook that is neither busy nor resting to a hand."""
        now, begun = self._wall(), 0
        with self._lock:
            self._resting = {hook: until for hook, until in self._resting.items() if until > now}
            not_now = self._busy | set(self._resting)
        while due := self._outbox.due(now, limit=1, not_to=not_now):
            webhook = due[0].webhook
            with self._lock:
                self._busy.add(webhook)
            not_now.add(webhook)
            hands.submit(self._deliver, due[0]).add_done_callback(self._noted)
            begun += 1
        return begun

    def _noted(self, done: "Future[None]") -> None:
        error = None if done.cancelled() else done.exception()
        if isinstance(error, Exception):
            self._record_error(error)

    def _deliver(self, delivery: WebhookDelivery) -> None:
        try:
            self.deliver(delivery)
        finally:
            with self._lock:
                self._busy.discard(delivery.webhook)

    def deliver(self, delivery: WebhookDelivery) -> DeliveryResult | None:
        """Make one attempt and write down what came of it; None if somebody else makes it."""
        parcel = self._outbox.claim(delivery, now=self._wall(), lease=_LEASE)
        if parcel is None:
            return None
        taken, webhook = parcel.delivery, parcel.webhook
        answer = self._post.send(webhook.url, webhook.secret, str(taken.key), body(parcel.notice))
        now = self._wall()
        again = None if answer.gone else next_try(taken, now=now, chance=self._chance())
        self._outbox.complete(taken, answer, now=now, again=again)
        if answer.ok:
            with self._lock:
                self.delivered += 1
                self._failures.pop(webhook.id, None)
            return answer
        with self._lock:
            self.failed += 1
        if answer.gone:
            self._outbox.abandon(webhook.id, now=now, plant_at=self._plant(), why=_GONE)
            log.warning("webhook %d is disabled: its receiver says that it is gone", webhook.id)
        else:
            with self._lock:
                failed = self._failures[webhook.id] = self._failures.get(webhook.id, 0) + 1
                self._resting[webhook.id] = now + min(backoff(failed, 0.0), _LEASE)
        return answer
