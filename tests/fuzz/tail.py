"""The agent's log file under a hostile writer: every whole line is read once, whatever it holds."""

from pathlib import Path
from random import Random
from threading import Event

from edge_agent.sources.tail import Tail
from tests.fuzz.mutation import mutated_bytes
from wire.alarm import Alarm
from wire.log_rows import RowReader, RowRejected

_GOOD = b'{"timestamp": "2026-11-16T08:00:00Z", "alarm": 139}\n2026-11-16 08:00:01,26,1\n'


class _OneLook(Event):
    """Ends the source when it would wait for more."""

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        self.set()
        return True


def followed(dice: Random, file: Path) -> None:
    """Append in pieces that break lines anywhere, with restarts in between; nothing is lost or taken twice."""
    file.unlink(missing_ok=True)
    for old in file.parent.glob(f"{file.name}.*"):
        old.unlink()
    reader, bookmark, rotations = RowReader(), None, 0
    content, expected = b"", list[Alarm]()
    taken: list[Alarm] = []
    refused = expected_refused = 0
    tail = Tail(file, rows=reader, poll_seconds=0)
    for _ in range(dice.randrange(1, 5)):
        piece = mutated_bytes(dice, _GOOD * dice.choice((1, 2, 30)), _GOOD)[: dice.choice((10, 1000, 9000))]
        content += piece
        with file.open("ab") as writer:
            writer.write(piece)
        if dice.random() < 0.5:
            tail = Tail(file, rows=reader, poll_seconds=0)  # the agent was started anew
        for batch in tail.batches(bookmark, _OneLook()):
            taken += batch.alarms
            refused += len(batch.skipped)
            bookmark = batch.bookmark
        if dice.random() < 0.2 and content.endswith(b"\n") and bookmark:
            rotations += 1
            file.rename(file.with_name(f"{file.name}.{rotations}"))
            file.touch()
    for line in content.split(b"\n")[:-1]:
        try:
            alarm = reader.read((line + b"\n").decode("utf-8", errors="replace"))
        except RowRejected:
            expected_refused += 1
            continue
        expected += [alarm] if alarm else []
    for batch in tail.batches(bookmark, _OneLook()):
        taken += batch.alarms
        refused += len(batch.skipped)
    assert taken == expected
    assert refused == expected_refused
