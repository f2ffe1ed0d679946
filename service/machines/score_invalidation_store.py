"""What arrives late for scoring: the forecasts it reaches back to are marked in the very commit that brings it.

Scoring reads events and writes outcomes in two steps, and commits of events go on in between. So that none is
overlooked, scoring first says how far it is about to score (``open_scoring``), and every commit that reaches
behind that mark counts itself on it. Scoring closes by looking at the count: if it has moved, what was just
scored is written, but to be scored again. The marks stand in the database, so a crash or another process
changes nothing.
"""

from operator import attrgetter

from sqlalchemy import Connection, text

from service.database.event_row import IN_TIME
from service.database.locks import Advisory
from service.machines.events import EventWrite

_FURTHEST = text("SELECT max(through_us) FROM scoring_progress")
_COUNT = text("UPDATE scoring_progress SET late = late + 1 WHERE machine_id = :machine AND through_us > :at")
_MARK = text("UPDATE outcomes SET stale = 1 WHERE machine_id = :machine AND horizon_end_us > :at AND stale = 0")
_OPEN = text(
    "INSERT INTO scoring_progress (machine_id, through_us, late) VALUES (:machine, :through, 0)"
    " ON CONFLICT (machine_id) DO UPDATE SET through_us ="
    " CASE WHEN excluded.through_us > scoring_progress.through_us THEN excluded.through_us"
    " ELSE scoring_progress.through_us END"
)
_at_us = attrgetter("at_us")
_LATE = "SELECT late FROM scoring_progress WHERE machine_id = :machine"


def invalidate_scores(connection: Connection, recording: EventWrite, *, stored: int) -> None:
    """Mark inside a commit all outcomes that its events and gaps may change; ordinary ones cost one look.

    An event changes what came in its own horizons, and what the evidence and the base rate said in all later
    ones, so everything from it on is marked.
    """
    if not (stored or recording.gaps):
        return
    _pass_gate(connection, "pg_advisory_xact_lock_shared")
    furthest = connection.execute(_FURTHEST).scalar()
    if furthest is None:
        return
    reached = _reached(recording, furthest, stored=stored)
    for machine, at_us in sorted(reached.items()):  # in one order, so that two commits never wait for each other
        if connection.execute(_COUNT, {"machine": machine, "at": at_us}).rowcount:
            connection.execute(_MARK, {"machine": machine, "at": at_us})


def begin_scoring(connection: Connection, machine: int, through_us: int) -> int:
    """Say that a machine's forecasts are about to be scored up to a moment; return the count to close with."""
    _pass_gate(connection, "pg_advisory_xact_lock")
    connection.execute(_OPEN, {"machine": machine, "through": through_us})
    return int(connection.execute(text(_LATE), {"machine": machine}).scalar_one())


def was_invalidated(connection: Connection, machine: int, count: int) -> bool:
    """Say whether anything late was committed since scoring was opened; from here to the end nothing can be."""
    hold = "" if connection.dialect.name == "sqlite" else " FOR UPDATE"
    return bool(connection.execute(text(_LATE + hold), {"machine": machine}).scalar_one() != count)


def _reached(recording: EventWrite, before: int, *, stored: int) -> dict[int, int]:
    """Return the earliest moment that a recording says something new about, for machines where that is early."""
    reached: dict[int, int] = {}
    if stored and min(map(_at_us, recording.events)) < before:
        for machine, _, _, _, at_us, flag in recording.events:
            if flag == IN_TIME and at_us < reached.get(machine, before):
                reached[machine] = at_us
    for gap in recording.gaps:
        if gap.first_us < reached.get(gap.machine, before):
            reached[gap.machine] = gap.first_us
    return reached


def _pass_gate(connection: Connection, lock: str) -> None:
    """Let commits through together and scoring alone: who has looked at the mark ends before scoring reads."""
    if connection.dialect.name != "sqlite":  # there every write transaction is alone already
        connection.execute(text(f"SELECT {lock}(:gate)"), {"gate": Advisory.SCORING.value})
