"""Background threads: evaluate notifications, send webhooks."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Lock

from service.messaging.background import BackgroundThread
from service.notifications.service import NotificationService
from service.notifications.store import DeliveryStore
from service.notifications.webhook import DeliveryResult, WebhookDelivery, backoff, next_try
from service.notifications.webhook_client import WebhookClient
from service.notifications.webhook_service import delivery_body

log = logging.getLogger(__name__)

_EVALUATION_INTERVAL_S = 0.25
_YIELD_S = 0.02  # pause between two transactions, for ingest
_REST_RATIO = 9  # rest for this multiple of the time an evaluation took
_SEND_INTERVAL_S = 0.5
_CLAIM_LEASE = timedelta(minutes=1)  # longer than any attempt takes
MAX_WORKERS = 8
_GONE = "Disabled: the receiver responded 410 Gone. Enable the webhook when the receiver is back."


class NotificationThread(BackgroundThread):
    """Evaluates forecasts soon after they are published."""

    def __init__(self, service: NotificationService, *, interval: float = _EVALUATION_INTERVAL_S) -> None:
        super().__init__("notification thread")
        self._service, self._interval = service, interval

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            if not self._service.pending.is_set():
                continue
            started = time.monotonic()
            try:
                self._service.run_once(lambda: self._stopping.wait(_YIELD_S))
                self.last_error = None
            except Exception as error:  # noqa: BLE001 - recorded and retried
                self._record_error(error)
            self._stopping.wait(_REST_RATIO * (time.monotonic() - started))


class WebhookSender(BackgroundThread):
    """Sends due deliveries, at least once each; one attempt at a time per webhook.

    A failing webhook is backed off, so that many failing ones do not occupy all workers. ``chance`` returns the
    jitter of the backoff.
    """

    def __init__(
        self,
        deliveries: DeliveryStore,
        client: WebhookClient,
        *,
        wall: Callable[[], datetime],
        plant: Callable[[], datetime],
        chance: Callable[[], float],
        public_url: str = "",
        interval: float = _SEND_INTERVAL_S,
    ) -> None:
        super().__init__("webhook sender")
        self._deliveries, self._client, self._interval = deliveries, client, interval
        self._wall, self._plant, self._chance, self._public_url = wall, plant, chance, public_url
        self._lock = Lock()
        self._busy: set[int] = set()
        self._backed_off: dict[int, datetime] = {}
        self._failures: dict[int, int] = {}  # consecutive, by webhook
        self.delivered = self.failed = 0  # attempts
        self.on_change: Callable[[], None] = lambda: None  # is called after every attempt

    def _run(self) -> None:
        with ThreadPoolExecutor(MAX_WORKERS, thread_name_prefix="webhook-sender") as workers:
            while not self._stopping.is_set():
                submitted = 0
                try:
                    submitted = self._submit_due(workers)
                    self.last_error = None
                except Exception as error:  # noqa: BLE001 - recorded and retried
                    self._record_error(error)
                self._stopping.wait(self._interval / 10 if submitted else self._interval)
            workers.shutdown(cancel_futures=True)  # cancelled deliveries are due again after a restart

    def _submit_due(self, workers: ThreadPoolExecutor) -> int:
        """Submit the first due delivery of each webhook that is neither busy nor backed off."""
        now, submitted = self._wall(), 0
        with self._lock:
            self._backed_off = {webhook: until for webhook, until in self._backed_off.items() if until > now}
            skipped = self._busy | set(self._backed_off)
        while due := self._deliveries.due(now, limit=1, exclude_webhooks=skipped):
            webhook = due[0].webhook
            with self._lock:
                self._busy.add(webhook)
            skipped.add(webhook)
            workers.submit(self._deliver, due[0]).add_done_callback(self._on_done)
            submitted += 1
        return submitted

    def _on_done(self, future: "Future[None]") -> None:
        error = None if future.cancelled() else future.exception()
        if isinstance(error, Exception):
            self._record_error(error)

    def _deliver(self, delivery: WebhookDelivery) -> None:
        try:
            self.deliver(delivery)
        finally:
            with self._lock:
                self._busy.discard(delivery.webhook)
            self.on_change()

    def deliver(self, delivery: WebhookDelivery) -> DeliveryResult | None:
        """Make one attempt and store its result; return None if another sender has claimed the delivery."""
        job = self._deliveries.claim(delivery, now=self._wall(), lease=_CLAIM_LEASE)
        if job is None:
            return None
        claimed, webhook = job.delivery, job.webhook
        body = delivery_body(job.notification, self._public_url)
        result = self._client.send(webhook.url, webhook.secret, str(claimed.key), body)
        now = self._wall()
        retry_at = None if result.gone else next_try(claimed, now=now, chance=self._chance())
        self._deliveries.complete(claimed, result, now=now, next_try=retry_at)
        if result.ok:
            with self._lock:
                self.delivered += 1
                self._failures.pop(webhook.id, None)
            return result
        with self._lock:
            self.failed += 1
        if result.gone:
            self._deliveries.abandon(webhook.id, now=now, plant_at=self._plant(), reason=_GONE)
            log.warning("webhook %d disabled: the receiver responded 410 Gone", webhook.id)
        else:
            with self._lock:
                failures = self._failures[webhook.id] = self._failures.get(webhook.id, 0) + 1
                self._backed_off[webhook.id] = now + min(backoff(failures, 0.0), _CLAIM_LEASE)
        return result
