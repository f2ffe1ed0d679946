"""Enrol machines, queue their jobs when there is enough data, and refresh, retire and erase them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event

from service.broker_access.service import CredentialService
from service.errors import Conflict, InputRejected
from service.forecasts.scheduler import ForecastPublisher
from service.http.message import Message
from service.learning.enrolment_store import EnrolmentStore
from service.learning.job_store import JobStore
from service.learning.models import Enrolled, Job, NewMachine
from service.learning.training_data import DatasetBuilder
from service.machines.event_store import EventStore
from service.machines.models import Machine, zone_named
from service.machines.store import MachineStore
from service.messaging.bus import ChangeBus, ChangesMissed, HistoryLoaded
from wire.clock import PlantClock
from wire.enums import JobKind, JobState, MachineState
from wire.identity import MachineId

_RETRAIN = {
    MachineState.LIVE: (JobKind.REFRESH, JobState.QUEUED),
    MachineState.FAILED: (JobKind.ENROL, JobState.COLLECTING),
}
_CHECK_INTERVAL = timedelta(minutes=30)  # of plant time
_FIRST_EVENT_CHECK_INTERVAL = timedelta(minutes=1)  # of plant time
_NO_EVENT = "Waiting for the first event. Start the machine's agent, or load its past."
_NO_AGENT = "Its agent is not online: start it, or load more of the machine's past."


def wall_now() -> datetime:
    """Return the wall-clock time."""
    return datetime.now(UTC)


@dataclass
class EnrolmentService:
    """Enrolment; without ``refresh_after`` machines are refreshed only on request.

    ``wake`` is set when there may be a job to claim.
    """

    machines: MachineStore
    enrolments: EnrolmentStore
    jobs: JobStore
    events: EventStore
    datasets: DatasetBuilder
    clock: PlantClock
    publisher: ForecastPublisher
    credentials: CredentialService
    refresh_after: timedelta | None
    wake: Event = field(default_factory=Event)
    _checked_at: dict[int, datetime] = field(init=False, default_factory=dict)
    _without_events: set[int] = field(
        init=False, default_factory=set
    )  # jobs whose machine has raised no alarm yet

    def subscribe_to(self, bus: ChangeBus) -> None:
        """Check collecting machines again when a history was loaded."""
        bus.subscribe(HistoryLoaded, lambda _event: self.invalidate())
        bus.subscribe(ChangesMissed, lambda _event: self.invalidate())

    def enrol(self, new: NewMachine, *, key: str | None, who: str) -> Enrolled:
        """Enrol a machine, or return the job that it has; a repeated request changes nothing."""
        _check(new)
        return self.enrolments.enrol(new, key=key, who=who, at=wall_now(), plant_at=self.clock.now())

    def refresh(self, machine: MachineId) -> Job:
        """Queue a new training of a machine from its recent windows."""
        known = self._active(machine)
        if known.state not in (MachineState.LIVE, MachineState.LEARNING):
            raise Conflict(
                f"{machine} is {known.state.value} and has not been learned yet; its enrolment goes on."
            )
        job = self.jobs.open(known, JobKind.REFRESH, JobState.QUEUED, at=wall_now())
        self.wake.set()
        return job

    def retire(self, machine: MachineId, *, who: str, reason: str | None) -> None:
        """Retire a machine; its share of the memory is free for others."""
        known = self._active(machine)
        self.enrolments.retire(known, who=who, at=wall_now(), plant_at=self.clock.now(), reason=reason)
        self._withdraw(machine, who=who, reason=reason)

    def erase(self, machine: MachineId, *, who: str, reason: str) -> list[str]:
        """Delete all data of a machine; return the versions that were trained on it."""
        known = self.machines.get(machine)
        learned_by = self.enrolments.erase(known, who=who, at=wall_now(), plant_at=self.clock.now(), reason=reason)
        self._withdraw(machine, who=who, reason=reason)
        return learned_by

    def queue_ready(self) -> int:
        """Queue the collecting jobs that have enough data by now; return how many."""
        now = self.clock.now()
        queued = 0
        for job in self.jobs.collecting():
            checked_at = self._checked_at.get(job.id)
            wait = _FIRST_EVENT_CHECK_INTERVAL if job.id in self._without_events else _CHECK_INTERVAL
            if checked_at is not None and timedelta(0) <= now - checked_at < wait:
                continue
            self._checked_at[job.id] = now
            self._without_events.discard(job.id)
            queued += self._queue_if_ready(job, now)
        return queued

    def invalidate(self) -> None:
        """Check every collecting machine soon: a history may have been loaded."""
        self._checked_at.clear()
        self.wake.set()

    def queue_refreshes(self) -> int:
        """Queue machines whose last training, successful or not, is too old; return how many."""
        if self.refresh_after is None:
            return 0
        due = self.clock.now() - self.refresh_after
        queued = 0
        for machine in self.machines.all():
            again = _RETRAIN.get(machine.state)
            if again is None or (machine.learned_at is not None and machine.learned_at >= due):
                continue
            last = self.jobs.newest(machine=machine.id, limit=1)
            if not last or (not last[0].is_open and self._long_ago(last[0])):
                self.jobs.open(machine, *again, at=wall_now())
                queued += 1
        return queued

    def _withdraw(self, machine: MachineId, *, who: str, reason: str | None) -> None:
        """Remove the machine's forecast and credentials from the broker, after the database."""
        self.publisher.clear(machine)
        self.credentials.revoke(machine, who=who, reason=reason)

    def _long_ago(self, job: Job) -> bool:
        """Return whether a job ended longer ago than ``refresh_after``, in plant time."""
        age = wall_now() - (job.finished_at or job.created_at)
        return self.refresh_after is not None and age * self.clock.speed >= self.refresh_after

    def _queue_if_ready(self, job: Job, now: datetime) -> bool:
        machine = self.machines.get(job.machine)
        count = self.datasets.training_windows(machine, now)
        if count >= self.datasets.policy.min_windows:
            self.jobs.queue(job)
            return True
        has_events = self.events.first_at(machine) is not None
        if not has_events:
            self._without_events.add(job.id)
        text = self._missing_data_text(machine, count) if has_events else _NO_EVENT
        if flagged := self.events.flagged(machine):
            text += f" {flagged} events do not count, because their times lie in the future or too far back."
        message = Message.of(text)
        if message != job.message:
            self.jobs.set_message(job, message, MachineState.COLLECTING if has_events else MachineState.REGISTERED)
        return False

    def _missing_data_text(self, machine: Machine, windows: int) -> str:
        policy, agent = self.datasets.policy, self.machines.agent(machine)
        days = policy.days_until_enough(windows)
        text = (
            f"Collecting data: {windows} of {policy.min_windows} hourly windows; needs about {days} more "
            f"{'day' if days == 1 else 'days'}."
        )
        return text if agent is not None and agent.online else f"{text} {_NO_AGENT}"

    def _active(self, machine: MachineId) -> Machine:
        known = self.machines.get(machine)
        known.require_active()
        return known


def _check(new: NewMachine) -> None:
    zone_named(new.time_zone or "UTC", pointer="body/time_zone")
    if new.name is not None and not new.name.isprintable():
        raise InputRejected("A name must consist of printable characters.")
