"""The thread that keeps this process's turns, and tells the others that it is there and how it is."""

import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.core.process import Process, Report, Turn
from service.errors import Unavailable
from service.flows.ports import Processes, Turns
from service.worker.tireless import Tireless
from wire.words import ProcessRole

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)
_PULSE = 2.0  # seconds between two renewals
_MARGIN = 2.0  # seconds before the database lets another in, in which what is under way may end


@dataclass(frozen=True)
class Member:
    """Which process this is."""

    name: str
    roles: frozenset[ProcessRole]
    since: datetime


class Steward(Tireless):
    """Holds turns by the clock of this process: one that was stopped for long finds them lost when it wakes."""

    def __init__(  # noqa: PLR0913 - it speaks for a whole process
        self,
        member: Member,
        wanted: Collection[Turn],
        *,
        turns: Turns,
        processes: Processes,
        report: Callable[[], Report],
        wall: Callable[[], datetime],
        changed: Callable[[Turn, bool], None] = lambda _turn, _mine: None,
        lease: timedelta = LEASE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("steward")
        self._member, self._wanted, self._lease = member, frozenset(wanted), lease
        self._turns, self._processes = turns, processes
        self._report, self._wall, self._changed, self._monotonic = report, wall, changed, monotonic
        self._until: dict[Turn, float] = {}
        self._told: set[Turn] = set()

    def holds(self, turn: Turn) -> bool:
        """Say whether it is surely this process's turn now."""
        return self._monotonic() < self._until.get(turn, float("-inf"))

    @property
    def held(self) -> tuple[str, ...]:
        """The names of the turns that are this process's now."""
        return tuple(sorted(turn.value for turn in self._wanted if self.holds(turn)))

    def stop(self) -> None:
        """End, and let others take over at once."""
        super().stop()
        self._until = {}
        with suppress(Unavailable):
            self._turns.let_go(self._member.name)
            self._processes.leave(self._member.name)

    def renew(self) -> None:
        """Keep what is held, take what is free, and report."""
        began = self._monotonic()
        held = self._turns.hold(self._wanted, self._member.name, self._lease)
        good_until = began + self._lease.total_seconds() - _MARGIN
        self._until = dict.fromkeys(held, good_until)
        self._tell()
        member = self._member
        self._processes.report(Process(member.name, member.roles, member.since, self._wall(), self._report()))

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.renew()
                self.complaint = None
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._troubled(error)
                self._tell()
            self._stopping.wait(_PULSE)

    def _tell(self) -> None:
        held = {turn for turn in self._wanted if self.holds(turn)}
        for turn in sorted(held ^ self._told):
            log.info("%s: %s", turn.value, "my turn" if turn in held else "no longer my turn")
            self._changed(turn, turn in held)
        self._told = held
