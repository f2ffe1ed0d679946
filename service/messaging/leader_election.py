"""Leader election: a process renews its leases in a thread that does nothing else, so that nothing delays it."""

import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import timedelta

from service.errors import Unavailable
from service.messaging.background import BackgroundThread
from service.messaging.bus import ChangeBus, LeaseChanged
from service.messaging.cluster_store import LeaseStore
from service.messaging.process import Lease, ProcessInfo

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)
_RENEW_INTERVAL_S = 2.0
_SAFETY_MARGIN_S = 2.0  # before the database gives the lease to another process; work under way may end in it


class LeaseKeeper(BackgroundThread):
    """Holds leases by the clock of this process: after a long suspension it finds them expired."""

    def __init__(
        self,
        process: ProcessInfo,
        wanted: Collection[Lease],
        *,
        leases: LeaseStore,
        bus: ChangeBus,
        ttl: timedelta = LEASE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("lease keeper")
        self._process, self._wanted, self._ttl = process, frozenset(wanted), ttl
        self._leases, self._bus, self._monotonic = leases, bus, monotonic
        self._until: dict[Lease, float] = {}
        self._published: set[Lease] = set()

    def is_holder(self, lease: Lease) -> bool:
        """Return whether this process certainly holds a lease now."""
        return self._monotonic() < self._until.get(lease, float("-inf"))

    @property
    def held(self) -> tuple[str, ...]:
        """The names of the leases that this process holds now."""
        return tuple(sorted(lease.value for lease in self._wanted if self.is_holder(lease)))

    def stop(self) -> None:
        """End, and release the leases at once."""
        super().stop()
        self._until = {}
        with suppress(Unavailable):
            self._leases.release(self._process.name)

    def renew(self) -> None:
        """Renew the leases that are held, and acquire those that are free."""
        started = self._monotonic()
        held = self._leases.acquire(self._wanted, self._process.name, self._ttl)
        self._until = dict.fromkeys(held, started + self._ttl.total_seconds() - _SAFETY_MARGIN_S)
        self._publish_changes()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.renew()
                self.last_error = None
            except Exception as error:  # noqa: BLE001 - recorded, and tried again
                self._record_error(error)
                self._publish_changes()
            self._stopping.wait(_RENEW_INTERVAL_S)

    def _publish_changes(self) -> None:
        held = {lease for lease in self._wanted if self.is_holder(lease)}
        for lease in sorted(held ^ self._published):
            log.info("lease %s: %s", lease.value, "acquired" if lease in held else "lost")
            self._bus.publish(LeaseChanged(lease, lease in held))
        self._published = held
