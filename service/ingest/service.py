"""Messages to committed events and acks: judge each event alone, commit once, then say what is committed."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from service.database.event_row import FROM_THE_FUTURE, IN_TIME, TOO_OLD, EventRow, flag_of, kind_of
from service.ingest.duplicate_agents import DuplicateAgentDetector
from service.ingest.stats import LATE
from service.machines.events import MAX_BODY, EventWrite, EventWriter, GapRow, QuarantineRow, WriteResult
from service.machines.models import Agent, Machine
from service.machines.store import MachineCache
from wire.acks import Ack, merge_ranges, to_ranges
from wire.codec import decode, decode_batch
from wire.errors import PayloadRejected, TopicRejected
from wire.identity import MachineId
from wire.state import AgentState, Note, bounded
from wire.timestamps import isoformat, to_us
from wire.topics import Channel, parse_topic

_LATE = timedelta(seconds=LATE)
_SAMPLE_US = 20 * 60 * 1_000_000
SKIPPED_ROW = "unreadable_row"  # the reason of a sample; the agent counts all of them
_parse_topic = lru_cache(maxsize=10_000)(parse_topic)


class Sender(NamedTuple):
    """Whom an ack is for: a machine's spool, and the process that sends from it, where it says so."""

    machine: MachineId
    epoch: UUID
    instance: str | None


class IncomingMessage(NamedTuple):
    """A message as the broker handed it over."""

    topic: str
    payload: bytes
    retained: bool = False


class TimeBounds(NamedTuple):
    """The first and the last moment that is believed, in microseconds."""

    earliest_us: int
    latest_us: int


@dataclass(frozen=True)
class TimePolicy:
    """Which event times are believed: flagged ones are stored but kept out of windows."""

    future_tolerance: timedelta = timedelta(minutes=5)
    retention: timedelta = timedelta(days=400)

    def bounds(self, now: datetime) -> TimeBounds:
        """Return between which times events are believed at ``now``."""
        return TimeBounds(to_us(now - self.retention), to_us(now + self.future_tolerance))

    def judge(self, now: datetime) -> Callable[[int], int]:
        """Return what tells an event's flag from its time in microseconds, as seen at ``now``."""
        earliest, latest = self.bounds(now)

        def flag(at_us: int) -> int:
            if earliest <= at_us <= latest:
                return IN_TIME
            return FROM_THE_FUTURE if at_us > latest else TOO_OLD

        return flag


@dataclass
class IngestBatch:
    """What a handful of messages amounts to, before it is committed."""

    now: datetime
    policy: TimePolicy
    registry: MachineCache
    duplicate_agents: DuplicateAgentDetector = field(default_factory=DuplicateAgentDetector)
    present: Mapping[int, Agent] = field(default_factory=dict)  # last agent states, by machine
    stale_after: timedelta = timedelta(0)
    write: EventWrite = field(init=False)
    acked: dict[Sender, list[tuple[int, int]]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    machines: dict[MachineId, Machine] = field(default_factory=dict)
    late: set[MachineId] = field(default_factory=set)
    affected: set[MachineId] = field(default_factory=set)  # whose forecasts may have changed

    def __post_init__(self) -> None:
        self.write = EventWrite(to_us(self.now), renumber_clashes=True)
        self._flag = self.policy.judge(self.now)
        self._late_before = self.now - _LATE

    def add(self, message: IncomingMessage) -> None:
        """Judge one message, whatever it holds; raises only if the store that knows the machines is away."""
        try:
            topic = _parse_topic(message.topic)
        except TopicRejected as error:
            self._quarantine(None, message, error.reason, error.detail)
            return
        machine = self.registry.find(topic.machine)
        if machine is None:
            self.write.unregistered.add(topic.machine)
            self.counts["unregistered"] += 1
            return
        self.machines[topic.machine] = machine
        try:
            if topic.channel is Channel.EVENTS:
                self._add_events(machine, message)
            elif topic.channel is Channel.STATE:
                self._add_state(machine, message)
        except PayloadRejected as error:
            self._quarantine(machine, message, error.reason, error.detail)

    def reject(self, message: IncomingMessage, reason: str, detail: str) -> None:
        """Quarantine a message without looking into it."""
        self._quarantine(None, message, reason, detail)

    def acks(self, recorded: WriteResult) -> list[tuple[MachineId, Ack]]:
        """Return what may be said to the agents once the recording is committed: what was stored of it."""
        rows = {machine: self.machines[machine].row_id for machine, _, _ in self.acked}
        reused = {(row.machine, row.epoch) for row in recorded.clashed}
        return [
            (
                machine,
                Ack(
                    epoch=epoch,
                    seqs=merge_ranges(seqs),
                    now=self.now,
                    instance=instance,
                    reused=(rows[machine], epoch) in reused,
                ),
            )
            for (machine, epoch, instance), seqs in self.acked.items()
            if rows[machine] not in recorded.absent and (rows[machine], epoch) not in recorded.refused
        ]

    def _add_events(self, machine: Machine, message: IncomingMessage) -> None:
        batch = decode_batch(message.payload)
        row, epoch = machine.row_id, batch.epoch
        self.affected.add(machine.id)
        acked = self.acked.setdefault(Sender(machine.id, epoch, batch.instance), [])
        judge = self._flag
        taken = [
            EventRow(row, epoch, event.seq, event.code, at_us := to_us(event.at), judge(at_us))
            for event in batch.events
        ]
        flagged = sum(event.flag != IN_TIME for event in taken)
        if batch.transitions:
            taken += [
                EventRow(row, epoch, one.seq, one.code, at_us := to_us(one.at), flag_of(one.kind, judge(at_us)))
                for one in batch.transitions
            ]
            acked += to_ranges([one.seq for one in batch.transitions])
        self.write.events += taken
        self.write.codes += [(row, code) for code in batch.codes]
        if flagged:
            self.counts["flagged"] += flagged
        if batch.events and batch.events[0].at < self._late_before:
            self.late.add(machine.id)
        acked += to_ranges([event.seq for event in batch.events])
        for gap in batch.gaps:
            first, last = gap.seqs
            self.write.gaps.append(
                GapRow(row, epoch, first, last, to_us(gap.first_at), to_us(gap.last_at), gap.reason.value)
            )
            acked.append(gap.seqs)
        for bad in batch.rejected:
            self.counts[f"quarantined:{bad.reason}"] += 1
            envelope = f'{{"epoch":"{epoch}","{bad.kind}":['.encode()  # so that it can be replayed
            body = (envelope + bad.body + b"]}")[:MAX_BODY]
            self.write.quarantined.append(QuarantineRow(row, message.topic, bad.reason, bad.detail, body))
            if bad.seqs:
                acked.append(bad.seqs)
        if taken or batch.gaps or batch.rejected:  # an empty batch only asks for an ack
            self.write.seen_machines.add(row)

    def _add_state(self, machine: Machine, message: IncomingMessage) -> None:
        state = decode(AgentState, message.payload)
        # A retained state is old news; a live one, a last will above all, is from this very moment.
        seen_at = min(state.at, self.now) if message.retained else self.now
        believed = self.duplicate_agents.accept(
            machine.id,
            state.epoch,
            online=state.online,
            at=self.now,
            instance=state.instance,
            gave_way=state.gave_way,
        )
        pair = self.duplicate_agents.pair(machine.id, self.now)
        if pair is not None:
            self.write.duplicate_agents[machine.row_id] = _duplicate_note(machine.id, pair, self.now)
        if not believed:
            self.counts["states_of_another_agent"] += 1
            return
        before = self.present.get(machine.row_id)
        agent = _agent(state, seen_at, before)
        self.write.agent_states[machine.row_id] = agent
        self._sample_skipped_row(machine, message.topic, before, agent)
        if self._is_news(before, agent):
            self.affected.add(machine.id)

    def _sample_skipped_row(self, machine: Machine, topic: str, before: Agent | None, now: Agent) -> None:
        """Quarantine the last row that an agent could not read, if it is new: at most the first of 20 minutes."""
        last = now.last_skipped
        if last is None or not now.skipped:
            return
        known = before.last_skipped if before else None
        if known is not None and (known == last or to_us(known.at) // _SAMPLE_US == to_us(last.at) // _SAMPLE_US):
            return
        detail = f"{now.skipped:,} rows of the source could not be read until then; this is the last: {last.text}"
        body = f"{isoformat(last.at)} {last.text}".encode()
        self.write.quarantined.append(QuarantineRow(machine.row_id, topic, SKIPPED_ROW, _storable(detail), body))

    def _is_news(self, before: Agent | None, now: Agent) -> bool:
        """Say whether a state changes how far a forecast is to be trusted; most only say that all is as it was."""
        if before is None or before.online != now.online:
            return True
        return now.last_seen_at - before.last_seen_at >= self.stale_after

    def _quarantine(self, machine: Machine | None, message: IncomingMessage, reason: str, detail: str) -> None:
        self.counts[f"quarantined:{reason}"] += 1
        row = machine.row_id if machine else None
        self.write.quarantined.append(
            QuarantineRow(row, _storable(message.topic), reason, _storable(detail), message.payload[:MAX_BODY])
        )


@dataclass(frozen=True)
class IngestResult:
    """What was committed, the acks to send, and the machines whose forecasts may have changed.

    ``fresh`` are the events that were not stored before, of ``machines``.
    """

    acks: list[tuple[MachineId, Ack]]
    affected: set[MachineId]
    late: set[MachineId]
    recorded: WriteResult
    counts: Counter[str]
    new_events: Sequence[EventRow] = ()
    machines: Mapping[MachineId, Machine] = field(default_factory=dict)


def commit(intake: IngestBatch, *, recorder: EventWriter) -> IngestResult:
    """Commit an intake in one transaction; only then may its acks be sent."""
    recorded = WriteResult(0, 0, 0) if intake.write.is_empty else recorder.commit(intake.write)
    fresh = intake.write.events if recorded.new_events is None else recorded.new_events
    transitions = sum(kind_of(row.flag) is not None for row in fresh)
    counts = intake.counts + Counter(
        stored=recorded.stored - transitions,
        transitions=transitions,
        duplicate=recorded.duplicates,
        reused_numbers=len(recorded.clashed),
        **{"quarantined:conflict": recorded.conflicts},
    )
    if recorded.absent:
        counts["unregistered"] += len(recorded.absent)
    if recorded.refused:
        counts["refused_epochs"] += len(recorded.refused)
    return IngestResult(
        intake.acks(recorded), intake.affected, intake.late, recorded, counts, fresh, intake.machines
    )


def _agent(state: AgentState, seen_at: datetime, before: Agent | None) -> Agent:
    """Return how an agent is by its state.

    A last will was written when the connection began: what the agent has said since then is newer.
    """
    if (
        not state.online
        and before
        and before.epoch == state.epoch
        and before.state_at
        and before.state_at > state.at
    ):
        return replace(before, online=False, last_seen_at=seen_at)
    return Agent(
        state.online,
        seen_at,
        state.agent,
        state.epoch,
        state.spooled,
        state.skew_ms,
        state_at=state.at,
        skipped=state.skipped,
        last_skipped=state.last_skipped,
        warning=state.warning,
        connected_at=state.connected_at,
    )


def _duplicate_note(machine: MachineId, pair: tuple[str, str], at: datetime) -> Note:
    text = f"Two agents speak as {machine}: {pair[0]} and {pair[1]}. Stop one of them, or give it its own name."
    return Note(text=bounded(text), at=at)


def _storable(text: str) -> str:
    """Return text that every database takes: bounded, without the NUL that PostgreSQL refuses."""
    return text[:1000].replace("\0", "\ufffd")
