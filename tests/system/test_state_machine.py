"""Spool, broker and service as a state machine: whatever happens in whatever order, nothing is lost or doubled.

The spool and the service's intake and store are the real ones; the broker is the worst that the contract
allows: it may forget, repeat and reorder anything at any time, and so may the way back.
"""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edge_agent.spool import Spool
from service.database.engine import Database
from service.ingest.service import IncomingMessage, IngestBatch, TimePolicy, commit
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.store import MachineCache, MachineStore
from tests.service.conftest import enrolled
from tests.support.databases import new_sqlite
from wire.acks import Ack
from wire.alarm import Alarm
from wire.codec import decode, encode
from wire.events import EventBatch
from wire.identity import MachineId

pytestmark = pytest.mark.timeout(900)  # a failure is made small before it is told
NOW = datetime(2026, 11, 16, 8, tzinfo=UTC)
MACHINE = MachineId("padova", "filler-1")
TOPIC = "alarmcast/v1/padova/filler-1/events"
MOST_SPOOLED = 60

# The last message or ack is picked most often, an old one now and then.
picks = st.lists(st.integers(0, 5), min_size=1, max_size=4)


class Delivery(RuleBasedStateMachine):
    """Events are known by their codes, which count up from nought."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "spool"
        self._spool = Spool(self._path, max_events=MOST_SPOOLED)
        self._database = Database(new_sqlite(Path(self._folder.name) / "store.sqlite3"))
        self._machines = MachineStore(self._database)
        enrolled(EnrolmentStore(self._database), MACHINE)
        self._store = EventStore(self._database)
        self._messages: list[bytes] = []
        self._acks: list[bytes] = []
        self._raised = 0

    def teardown(self) -> None:
        self._spool.close()
        self._database.close()
        self._folder.cleanup()

    @rule(count=st.integers(1, 30))
    def alarms_are_raised(self, count: int) -> None:
        first = self._raised
        alarms = [Alarm(NOW - timedelta(hours=1) + timedelta(seconds=n), n) for n in range(first, first + count)]
        self._spool.append(alarms, str(first + count))
        self._raised += count

    @precondition(lambda self: self._raised)
    @rule(skipped=st.integers(0, 30), limit=st.integers(1, 40))
    def agent_sends(self, skipped: int, limit: int) -> None:
        """Send from anywhere: a real agent resends from the oldest, and that is only one of these."""
        pending = self._spool.pending((self._spool.oldest_seq() or 1) - 1 + skipped, limit)
        batch = EventBatch(epoch=self._spool.epoch, events=pending.events, gaps=pending.gaps)
        self._messages.append(encode(batch))

    @precondition(lambda self: self._messages)
    @rule(picks=picks)
    def service_commits(self, picks: list[int]) -> None:
        """Any messages, in any order, as often as you like: what is committed may be acked."""
        receipt = commit(self._intake(picks), recorder=self._store)
        self._acks += [encode(ack) for _, ack in receipt.acks]

    @precondition(lambda self: self._messages)
    @rule(picks=picks)
    def service_commits_and_dies_before_it_acks(self, picks: list[int]) -> None:
        commit(self._intake(picks), recorder=self._store)

    @precondition(lambda self: self._messages)
    @rule(picks=picks)
    def service_dies_before_it_commits(self, picks: list[int]) -> None:
        self._intake(picks)

    def _intake(self, picks: list[int]) -> IngestBatch:
        intake = IngestBatch(NOW, TimePolicy(), MachineCache(self._machines))
        for pick in picks:
            intake.add(IncomingMessage(TOPIC, self._messages[-1 - pick % len(self._messages)]))
        return intake

    @precondition(lambda self: self._acks)
    @rule(picks=picks)
    def agent_hears(self, picks: list[int]) -> None:
        """Any acks that were ever sent, however late."""
        for pick in picks:
            ack = decode(Ack, self._acks[-1 - pick % len(self._acks)])
            self._spool.delete_acked(ack.epoch, ack.seqs)

    @rule()
    def agent_dies(self) -> None:
        """As a power cut would: what was committed is there when it comes back."""
        epoch, bookmark = self._spool.epoch, self._spool.bookmark
        self._spool.close()
        self._spool = Spool(self._path, max_events=MOST_SPOOLED)
        assert (self._spool.epoch, self._spool.bookmark) == (epoch, bookmark)

    @invariant()
    def every_event_is_stored_once_or_waits_or_is_named_by_a_gap(self) -> None:
        machine = self._machines.get(MACHINE)
        stored = self._store.series(machine, NOW - timedelta(days=1), NOW + timedelta(days=1)).codes.tolist()
        assert len(stored) == len(set(stored)), "nothing is stored twice"
        pending = self._spool.pending(0, 10_000)
        waiting = {event.code for event in pending.events}
        named = {seq - 1 for gap in pending.gaps for seq in range(gap.seqs[0], gap.seqs[1] + 1)}
        told = self._store.newest_gaps(machine, NOW - timedelta(days=1), NOW + timedelta(days=1), 1000)
        named |= {seq - 1 for gap in told for seq in range(gap.first_seq, gap.last_seq + 1)}
        assert set(stored) | waiting | named == set(range(self._raised))
        assert not waiting & named
        assert len(waiting) == self._spool.depth().events <= MOST_SPOOLED

    @invariant()
    def bookmark_tells_what_was_spooled(self) -> None:
        assert int(self._spool.bookmark or 0) == self._raised


TestDelivery = Delivery.TestCase
TestDelivery.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
