"""The thread that keeps this process's turns, and does nothing else: whatever kept it waiting would cost them."""

import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import timedelta

from service.errors import Unavailable
from service.messaging.background import BackgroundThread
from service.messaging.lease_store import LeaseStore
from service.messaging.process import Lease, ProcessInfo

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)
_RENEW_INTERVAL_S = 2.0  # seconds between two renewals
_SAFETY_MARGIN_S = 2.0  # seconds before the database lets another in, in which what is under way may end


class LeaseKeeper(BackgroundThread):
    """Holds turns by the clock of this process: one that was stopped for long finds them lost when it wakes."""

    def __init__(
        self,
        member: ProcessInfo,
        wanted: Collection[Lease],
        *,
        turns: LeaseStore,
        changed: Callable[[Lease, bool], None] = lambda _turn, _mine: None,
        lease: timedelta = LEASE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("steward")
        self._member, self._wanted, self._lease = member, frozenset(wanted), lease
        self._turns, self._changed, self._monotonic = turns, changed, monotonic
        self._until: dict[Lease, float] = {}
        self._told: set[Lease] = set()

    def is_holder(self, turn: Lease) -> bool:
        """Say whether it is surely this process's turn now."""
        return self._monotonic() < self._until.get(turn, float("-inf"))

    @property
    def held(self) -> tuple[str, ...]:
        """The names of the turns that are this process's now."""
        return tuple(sorted(turn.value for turn in self._wanted if self.is_holder(turn)))

    def stop(self) -> None:
        """End, and let others take over at once."""
        super().stop()
        self._until = {}
        with suppress(Unavailable):
            self._turns.release(self._member.name)

    def renew(self) -> None:
        """Keep what is held, and take what is free."""
        began = self._monotonic()
        held = self._turns.acquire(self._wanted, self._member.name, self._lease)
        good_until = began + self._lease.total_seconds() - _SAFETY_MARGIN_S
        self._until = dict.fromkeys(held, good_until)
        self._tell()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.renew()
                self.complaint = None
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._record_error(error)
                self._tell()
            self._stopping.wait(_RENEW_INTERVAL_S)

    def _tell(self) -> None:
        held = {turn for turn in self._wanted if self.is_holder(turn)}
        for turn in sorted(held ^ self._told):
            log.info("%s: %s", turn.value, "my turn" if turn in held else "no longer my turn")
            self._changed(turn, turn in held)
        self._told = held
