"""Texts that strangers write: log rows, history files, catalogues and cursors; read, or refused in a sentence."""

import gzip
import json
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

from service.errors import InputRejected
from service.ingest.service import TimePolicy
from service.learning.history_file import ImportFile
from service.learning.history_import import load_history
from service.learning.history_preview import preview_history
from service.machines import api as machines
from service.machines.catalogue import SEVERITIES, parse_catalogue
from service.machines.events import Cursor, EventWrite, WriteResult
from service.machines.models import Machine
from service.scoring import api as scores
from tests.fuzz.messages import NOW
from tests.fuzz.mutation import MOMENTS, VALUES, mutated_bytes, mutated_value, written
from wire.columns import ColumnOptions
from wire.enums import MachineState
from wire.events import AlarmEvent
from wire.identity import MachineId
from wire.log_rows import RowReader, RowRejected
from wire.rest.histories import HistoryPreview
from wire.timestamps import EARLIEST, LATEST, to_us

_ZONES = (ZoneInfo("UTC"), ZoneInfo("Europe/Rome"), ZoneInfo("Pacific/Apia"))
_MACHINE = Machine(1, MachineId("padova", "filler-1"), "Filler", "UTC", NOW, MachineState.LIVE, None, None)


def _is_a_sentence(words: str) -> None:
    assert words.endswith(".")
    assert 2 < len(words) < 400


def row(dice: Random) -> None:
    """A line of a log is an alarm that the wire takes, none of ours, or refused."""
    line = _row(dice).decode("utf-8", errors="replace")
    reader = RowReader(dice.choice((None, "1")), dice.choice(_ZONES), dice.choice((None, NOW)))
    try:
        alarm = reader.read(line)
    except RowRejected as error:
        _is_a_sentence(f"{error}.")
        return
    if alarm is not None:
        event = AlarmEvent(seq=1, code=alarm.code, at=alarm.at)
        assert AlarmEvent.model_validate_json(event.model_dump_json()) == event


def _row(dice: Random) -> bytes:
    stamp, code = dice.choice(MOMENTS), dice.choice((139, 0, -1, 2**31, "x"))
    if dice.random() < 0.5:
        good = f"{stamp},{code},{dice.choice((1, '', '1,2'))}".encode()
    else:
        value = {"timestamp": stamp, "alarm": code, "serial": 1}
        good = written(dice, mutated_value(dice, value))
    return mutated_bytes(dice, good, b"2026-11-16 08:00:00,139") if dice.random() < 0.7 else good


class _Recorder:
    """Takes everything and counts."""

    def __init__(self) -> None:
        self.recordings: list[EventWrite] = []

    def commit(self, recording: EventWrite) -> WriteResult:
        self.recordings.append(recording)
        return WriteResult(len(recording.events), 0, 0)


_COLUMNS = (
    ColumnOptions(time="timestamp", code="alarm"),
    ColumnOptions(time="1", code="2", serial="3", header=False),
    ColumnOptions(time="timestamp", code="serial", text="alarm", encoding="cp1252"),
)


def _is_a_preview(shown: HistoryPreview) -> None:
    assert HistoryPreview.model_validate_json(shown.model_dump_json()) == shown
    if shown.problem is not None:
        _is_a_sentence(shown.problem)


def history(dice: Random, file: Path) -> None:
    """A history file is refused as a whole, or each of its rows is stored, quarantined or none of ours."""
    rows = [b"timestamp,alarm,serial", *(_row(dice) for _ in range(dice.randrange(6)))]
    content = b"\n".join(rows)
    if dice.random() < 0.3:
        content = gzip.compress(content, compresslevel=1)
        content = mutated_bytes(dice, content) if dice.random() < 0.5 else content
    file.write_bytes(content)
    recorder = _Recorder()
    log = ImportFile(file, name="upload", columns=dice.choice((None, *_COLUMNS)))
    _is_a_preview(preview_history(log, now=NOW, policy=TimePolicy()))
    try:
        loaded = load_history(_MACHINE, log, recorder=recorder, now=NOW, policy=TimePolicy())
    except InputRejected as error:
        _is_a_sentence(str(error))
        return
    kept = [item for recording in recorder.recordings for item in recording.quarantined]
    events = [item for recording in recorder.recordings for item in recording.events]
    ignored = loaded.too_old + loaded.from_the_future
    assert (loaded.stored, loaded.rejected) == (len(events), len(kept))
    assert loaded.rows == len(events) + len(kept) + ignored
    for item in kept:
        assert len(item.body) <= 64_000
        assert "\0" not in item.detail + item.topic
        assert len(item.detail) <= 1000
    for event in events:
        assert 0 <= event.code < 2**31
        assert to_us(EARLIEST) <= event.at_us < to_us(LATEST)


def catalogue(dice: Random) -> None:
    """A catalogue is entries that the API may show, or refused with a sentence."""
    good = 'code,text,severity,target\n139,Film torn,high,yes\n26,"Door, open",low,no\n'
    text = good
    if dice.random() < 0.5:
        words = ["code,text,severity,target"]
        words += [
            ",".join(str(dice.choice((139, 26, "Film", "high", "yes", "no", "", '"', *VALUES))) for _ in range(4))
            for _ in range(dice.randrange(4))
        ]
        text = dice.choice(("\n", "\r\n", "\r", "\x0b")).join(words)
    body = mutated_bytes(dice, text.encode(errors="surrogatepass"), good.encode())
    try:
        entries = parse_catalogue(body.decode(errors="replace"))
    except InputRejected as error:
        _is_a_sentence(str(error))
        return
    assert entries
    assert len({entry.code for entry in entries}) == len(entries)
    for entry in entries:
        assert 0 <= entry.code < 2**31
        assert 1 <= len(entry.text) <= 200
        assert entry.text.isprintable()
        assert entry.severity in SEVERITIES


def cursor(dice: Random) -> None:
    """A cursor is one that a database can compare with, or refused."""
    long, short = (0, 1, -1, 2**31, 2**63 - 1, dice.randrange(2**63)), (0, 1, -1, 2**31 - 1, dice.randrange(2**31))
    numbers = Cursor(dice.choice(long), dice.choice(short), dice.choice(short), dice.choice(long))
    text = machines.write_cursor(numbers)
    assert machines.read_cursor(text) == numbers
    changed = mutated_bytes(dice, text.encode(), json.dumps([1, 2]).encode()).decode(errors="replace")
    try:
        found = machines.read_cursor(changed)
    except InputRejected as error:
        _is_a_sentence(str(error))
    else:
        assert all(abs(part) < most for part, most in zip(found, (2**63, 2**31, 2**31, 2**63), strict=True))
    try:
        moment_us = scores.read_cursor(changed)
    except InputRejected as error:
        _is_a_sentence(str(error))
    else:
        assert to_us(EARLIEST) <= moment_us < to_us(LATEST)
