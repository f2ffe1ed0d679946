"""From the wire to the store: whatever is said, each message has its fate, and acks name what is committed."""

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from service.app.configuration import load_settings
from service.app.stores import open_stores
from service.database.event_row import FROM_THE_FUTURE, IN_TIME, TOO_OLD, EventRow
from service.ingest.duplicate_agents import DuplicateAgentDetector
from service.ingest.service import IncomingMessage, IngestBatch, IngestResult, TimePolicy, commit
from service.machines.epoch_store import renumbered
from service.machines.events import MAX_BODY, QuarantineRow
from service.machines.store import MachineCache
from tests.fuzz.messages import ENROLLED, NOW
from tests.service.conftest import enrolled
from wire.acks import Ack, merge_ranges
from wire.identity import MachineId
from wire.timestamps import to_us

_EARLIEST_US, _LATEST_US = 946_684_800_000_000, 4_102_444_800_000_000  # 2000 and 2100, written out
_FUTURE_US, _OLD_US = to_us(NOW) + 300_000_000, to_us(NOW) - 400 * 86_400_000_000
_LISTS = ("events", "gaps", "transitions")
Ranges = dict[tuple[MachineId, UUID], list[tuple[int, int]]]


class Ingest:
    """A real store with two machines; hands messages over as the ingester does and looks into the file itself."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        settings = load_settings(data_dir=self._folder)
        self._opened = open_stores(settings)
        self._stores = self._opened.__enter__()
        self._rows = {
            enrolled(self._stores.enrolments, MachineId.parse(name)).row_id: MachineId.parse(name)
            for name in ENROLLED
        }
        self._registry, self._twins = MachineCache(self._stores.machines), DuplicateAgentDetector()
        file = self._folder / "alarmcast.sqlite3"
        self._file = sqlite3.connect(f"file:{file}?mode=ro", uri=True, isolation_level=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._opened.__exit__(kind, error, trace)

    def take(self, messages: list[IncomingMessage]) -> None:
        """Judge and commit messages as one batch; raises AssertionError where a promise is broken."""
        intake = IngestBatch(NOW, TimePolicy(), self._registry, self._twins)
        for message in messages:
            self._judge_one(intake, message)
        receipt = commit(intake, recorder=self._stores.events)
        self._quarantine_is_whole(intake.write.quarantined)
        self._events_are_kept(intake.write.events)
        self._acks_name_what_is_committed(intake, receipt)

    def _judge_one(self, intake: IngestBatch, message: IncomingMessage) -> None:
        recording = intake.write
        events, gaps, refused = len(recording.events), len(recording.gaps), len(recording.quarantined)
        counted, told = sum(intake.counts.values()), dict(recording.agent_states)
        intake.add(message)
        taken = len(recording.events) - events + len(recording.gaps) - gaps
        quarantined = recording.quarantined[refused:]
        heard = any(agent is not told.get(row) for row, agent in recording.agent_states.items())
        noticed = taken or quarantined or heard or sum(intake.counts.values()) > counted
        asked = _items(message.payload) == 0 and message.topic.endswith("/events")
        not_ours = message.topic.endswith(("/acks", "/forecast"))
        assert noticed or asked or not_ours, "a message left no trace"
        whole = len(quarantined) == 1 and quarantined[0].body == message.payload[:MAX_BODY]
        if quarantined and not whole:
            items = _items(message.payload)
            assert items == taken + len(quarantined), "an event of a readable batch was neither taken nor kept"

    def _quarantine_is_whole(self, rows: list[QuarantineRow]) -> None:
        query = "SELECT body FROM quarantine WHERE topic = ? AND reason = ? AND sha256 = ?"
        for row in rows:
            assert len(row.body) <= MAX_BODY, f"{len(row.body)} bytes would be quarantined"
            found = self._ask(query, row.topic, row.reason, sha256(row.body).hexdigest())
            assert found == [(row.body,)], "what was quarantined is not there"

    def _events_are_kept(self, rows: list[EventRow]) -> None:
        query = (
            "SELECT code, at_us, flag FROM events JOIN epochs ON epochs.id = epoch_id"
            " WHERE events.machine_id = ? AND epoch = ? AND seq = ?"
        )
        for row in set(rows):
            assert 1 <= row.seq < 2**63
            assert 0 <= row.code < 2**31
            assert _EARLIEST_US <= row.at_us < _LATEST_US
            believed = TOO_OLD if row.at_us < _OLD_US else FROM_THE_FUTURE if row.at_us > _FUTURE_US else IN_TIME
            assert row.flag % 4 == believed
            ((code, at_us, flag),) = self._ask(query, row.machine, row.epoch.hex, row.seq)
            if (code, at_us, flag) == (row.code, row.at_us, row.flag):
                continue
            (moved,) = renumbered([(row, (code, at_us, None))])
            found = self._ask(query, row.machine, moved.epoch.hex, moved.seq)
            assert found == [(row.code, row.at_us, row.flag)], "an event is stored nowhere"

    def _acks_name_what_is_committed(self, intake: IngestBatch, receipt: IngestResult) -> None:
        committed: Ranges = defaultdict(list)
        for event in intake.write.events:
            committed[self._rows[event.machine], event.epoch].append((event.seq, event.seq))
        query = (
            "SELECT max(gaps.last_seq) FROM gaps JOIN epochs ON epochs.id = epoch_id"
            " WHERE gaps.machine_id = ? AND epoch = ? AND first_seq = ?"
        )
        for gap in intake.write.gaps:
            ((last,),) = self._ask(query, gap.machine, gap.epoch.hex, gap.first_seq)
            assert last is not None, "a gap is not there"
            assert last >= gap.last_seq, "of a gap that was acked a part is forgotten"
            committed[self._rows[gap.machine], gap.epoch].append((gap.first_seq, gap.last_seq))
        for kept in intake.write.quarantined:
            for epoch, seqs in _readable(kept):
                committed[self._rows[kept.machine or 0], epoch].append(seqs)
        cut = any(len(kept.body) == MAX_BODY for kept in intake.write.quarantined)  # its number may be cut off
        acked = {(machine, ack.epoch): ack for machine, ack in receipt.acks}
        assert len(acked) == len(receipt.acks)
        for whose, ack in acked.items():
            assert ack.now == NOW
            assert Ack.model_validate_json(ack.model_dump_json()) == ack
            known = merge_ranges(committed.pop(whose, []))
            assert ack.seqs == known or (cut and merge_ranges([*ack.seqs, *known]) == ack.seqs), (
                "an ack does not name what is committed"
            )
        assert not committed, "something was committed and not acked"

    def _ask(self, query: str, *values: object) -> list[Any]:
        with closing(self._file.execute(query, values)) as rows:
            return rows.fetchall()


def _items(payload: bytes) -> int | None:
    """Return how many items a batch holds, read by other means than the decoder's; None for no batch."""
    try:
        batch = json.loads(payload, parse_int=lambda digits: digits)
        lists = [batch.get(name, []) for name in _LISTS]
    except (ValueError, RecursionError, AttributeError):
        return None
    return sum(map(len, lists)) if all(isinstance(items, list) for items in lists) else None


def _readable(kept: QuarantineRow) -> list[tuple[UUID, tuple[int, int]]]:
    """Return which numbers of which spool a quarantined event or gap can be acked by, if any."""
    if kept.machine is None or not kept.body.startswith(b'{"epoch":"'):
        return []
    try:
        batch: dict[str, Any] = json.loads(kept.body)
        epoch = UUID(batch["epoch"])
        items: list[Any] = [item for name in _LISTS for item in batch.get(name, [])]
        (item,) = items
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return []
    # What was refused as a whole is kept as it came, and nobody is acked for it.
    taken_apart = kept.body.startswith(tuple(f'{{"epoch":"{epoch}","{name}":['.encode() for name in _LISTS))
    if not taken_apart or not isinstance(item, dict):
        return []
    seqs = item["seqs"] if "seqs" in item else [item.get("seq")] * 2
    if not isinstance(seqs, list) or len(seqs) != 2 or not all(type(seq) is int for seq in seqs):
        return []
    first, last = seqs
    return [(epoch, (first, last))] if 1 <= first <= last < 2**63 else []
