"""Enrolment: a machine is taken in, collects until there is enough to learn from, and is learned again in time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event

from service.broker_access.service import CredentialService
from service.errors import Conflict, InputRejected
from service.forecasts.scheduler import ForecastPublisher
from service.http.message import Message
from service.learning.enrolment import Enrolled, NewMachine
from service.learning.enrolment_store import EnrolmentStore
from service.learning.job import Job
from service.learning.job_store import JobStore
from service.learning.training_data import DatasetBuilder
from service.machines.event_store import EventStore
from service.machines.models import Machine, zone_named
from service.machines.store import MachineStore
from service.messaging.bus import ChangeBus, ChangesMissed, HistoryLoaded
from wire.clock import PlantClock
from wire.enums import JobKind, JobState, MachineState
from wire.identity import MachineId

_CHECK_INTERVAL = {
    MachineState.LIVE: (JobKind.REFRESH, JobState.QUEUED),
    MachineState.FAILED: (JobKind.ENROL, JobState.COLLECTING),
}
_RECHECK_AFTER = timedelta(minutes=30)  # of plant time: a window takes an hour to come
_UNTIL_FIRST_EVENT = timedelta(minutes=1)  # of plant time: whoever waits for the first event looks more often
_NOT_HEARD = "Waiting for the first event. Start the machine's agent, or load its past."
_NO_AGENT = "Its agent is not online: start it, or load more of the machine's past."


def wall_now() -> datetime:
    """Return the wall time."""
    return datetime.now(UTC)


@dataclass
class EnrolmentService:
    """The flow and its ports; ``refresh_after`` of None relearns machines only when asked to.

    ``news`` is set when there may be a job to take up, for whoever does not want to find out by looking.
    """

    machines: MachineStore
    enrolments: EnrolmentStore
    jobs: JobStore
    log: EventStore
    school: DatasetBuilder
    clock: PlantClock
    announcer: ForecastPublisher
    refresh_after: timedelta | None
    credentials: CredentialService | None = None
    wall: Callable[[], datetime] = wall_now
    wake: Event = field(default_factory=Event)
    _looked: dict[int, datetime] = field(default_factory=dict)
    _unheard: set[int] = field(default_factory=set)  # jobs whose machine has raised no alarm yet

    def subscribe_to(self, bus: ChangeBus) -> None:
        """Check collecting machines again when a history was loaded."""
        bus.subscribe(HistoryLoaded, lambda _event: self.invalidate())
        bus.subscribe(ChangesMissed, lambda _event: self.invalidate())

    def enrol(self, new: NewMachine, *, key: str | None, who: str) -> Enrolled:
        """Take a machine in, or say which job it has; asking twice changes nothing."""
        _check(new)
        return self.enrolments.enrol(new, key=key, who=who, at=self.wall(), plant_at=self.clock.now())

    def refresh(self, machine: MachineId) -> Job:
        """Learn a machine again from its recent windows, as the same task."""
        known = self._present(machine)
        if known.state not in (MachineState.LIVE, MachineState.LEARNING):
            raise Conflict(
                f"{machine} is {known.state.value} and has not been learned yet; its enrolment goes on."
            )
        job = self.jobs.open(known, JobKind.REFRESH, JobState.QUEUED, at=self.wall())
        self.wake.set()
        return job

    def retire(self, machine: MachineId, *, who: str, reason: str | None) -> None:
        """Let a machine go; its share of the memory is free for the next one."""
        known = self._present(machine)
        self.enrolments.retire(known, who=who, at=self.wall(), plant_at=self.clock.now(), reason=reason)
        self._let_go(machine, who=who, reason=reason)

    def erase(self, machine: MachineId, *, who: str, reason: str) -> list[str]:
        """Remove all that a machine has ever told; return the versions that had learned from it."""
        known = self.machines.get(machine)
        learned_by = self.enrolments.erase(
            known, who=who, at=self.wall(), plant_at=self.clock.now(), reason=reason
        )
        self._let_go(machine, who=who, reason=reason)
        return learned_by

    def queue_ready(self) -> int:
        """Queue the jobs whose machines have been heard for long enough by now; return how many."""
        now = self.clock.now()
        admitted = 0
        for job in self.jobs.collecting():
            looked = self._looked.get(job.id)
            wait = _UNTIL_FIRST_EVENT if job.id in self._unheard else _RECHECK_AFTER
            if looked is not None and timedelta(0) <= now - looked < wait:
                continue
            self._looked[job.id] = now
            self._unheard.discard(job.id)
            admitted += self._admit(job, now)
        return admitted

    def invalidate(self) -> None:
        """Look at every collecting machine at the next chance: a past may have been loaded."""
        self._looked.clear()
        self.wake.set()

    def queue_refreshes(self) -> int:
        """Queue what was learned too long ago, or tried too long ago in vain; return how many.

        A machine that was rejected is tried again as well: it has told more since, and the fleet has learned.
        """
        if self.refresh_after is None:
            return 0
        due = self.clock.now() - self.refresh_after
        queued = 0
        for machine in self.machines.all():
            again = _CHECK_INTERVAL.get(machine.state)
            if again is None or (machine.learned_at is not None and machine.learned_at >= due):
                continue
            last = self.jobs.newest(machine=machine.id, limit=1)
            if not last or (not last[0].is_open and self._long_ago(last[0])):
                self.jobs.open(machine, *again, at=self.wall())
                queued += 1
        return queued

    def _let_go(self, machine: MachineId, *, who: str, reason: str | None) -> None:
        """Take away what a machine has at the broker: its forecast, and the right to come in.

        In the database it has lost that already, in the transaction that let it go.
        """
        self.announcer.clear(machine)
        if self.credentials is not None:
            self.credentials.revoke(machine, who=who, reason=reason)

    def _long_ago(self, job: Job) -> bool:
        """Say whether a job ended so long ago, in plant time, that another try is worth it."""
        passed = self.wall() - (job.finished_at or job.created_at)
        return self.refresh_after is not None and passed * self.clock.speed >= self.refresh_after

    def _admit(self, job: Job, now: datetime) -> bool:
        machine = self.machines.get(job.machine)
        count, fewest = self.school.training_windows(machine, now), self.school.policy.min_windows
        if count >= fewest:
            self.jobs.queue(job)
            return True
        heard = self.log.first_at(machine) is not None
        if not heard:
            self._unheard.add(job.id)
        words = self._what_is_missing(machine, count) if heard else _NOT_HEARD
        if flagged := self.log.flagged(machine):
            words += f" {flagged} events do not count, because their times lie in the future or too far back."
        message = Message.of(words)
        if message != job.message:
            self.jobs.set_message(job, message, MachineState.COLLECTING if heard else MachineState.REGISTERED)
        return False

    def _what_is_missing(self, machine: Machine, windows: int) -> str:
        curriculum, agent = self.school.policy, self.machines.agent(machine)
        days = curriculum.days_until_enough(windows)
        words = (
            f"Collecting data: {windows} of {curriculum.min_windows} hourly windows; needs about {days} more "
            f"{'day' if days == 1 else 'days'}."
        )
        return words if agent is not None and agent.online else f"{words} {_NO_AGENT}"

    def _present(self, machine: MachineId) -> Machine:
        known = self.machines.get(machine)
        known.require_active()
        return known


def _check(new: NewMachine) -> None:
    zone_named(new.time_zone or "UTC", pointer="body/time_zone")
    if new.name is not None and not new.name.isprintable():
        raise InputRejected("A name must consist of printable characters.")
