"""Times in which a source was not read become gaps."""

from datetime import UTC, datetime, timedelta

from edge_agent.sources.outage import Outage, read_bookmark, write_bookmark

START = datetime(2026, 11, 16, 8, tzinfo=UTC)


def minutes(count: float) -> datetime:
    return START + timedelta(minutes=count)


def test_first_reading_of_a_new_source_has_no_gap() -> None:
    outage = Outage("plc", None)
    assert outage.succeeded(START) is None
    assert outage.succeeded(minutes(1)) is None


def test_outage_is_one_warning_and_one_gap_from_the_last_reading() -> None:
    outage = Outage("plc", None)
    outage.succeeded(START)
    first = outage.failed("no route", minutes(1))
    assert first is not None
    assert "no route" in (first.warning or "")
    assert outage.failed("no route", minutes(2)) is None
    lost = outage.succeeded(minutes(3))
    assert lost is not None
    assert lost.since == START
    assert outage.succeeded(minutes(4)) is None


def test_long_outage_has_a_gap_every_quarter_of_an_hour() -> None:
    outage = Outage("plc", None)
    outage.succeeded(START)
    found = [notice for minute in range(1, 40) if (notice := outage.failed("no route", minutes(minute)))]
    assert [notice.lost.since for notice in found if notice.lost] == [START, minutes(15)]
    last = outage.succeeded(minutes(40))
    assert last is not None
    assert last.since == minutes(30)


def test_stop_of_the_agent_is_a_gap() -> None:
    seen, stored = read_bookmark(write_bookmark(START, active={"a": ["1"]}))
    assert stored["active"] == {"a": ["1"]}
    lost = Outage("plc", seen).succeeded(minutes(9))
    assert lost is not None
    assert (lost.since, "the agent was stopped" in lost.message) == (START, True)


def test_gap_begins_before_the_loss_of_a_connection_was_noticed() -> None:
    outage = Outage("plc", None, timedelta(seconds=30))
    outage.succeeded(minutes(1))
    outage.failed("no answer", minutes(2))
    lost = outage.succeeded(minutes(3))
    assert lost is not None
    assert lost.since == minutes(0.5)


def test_source_that_keeps_alarms_has_one_gap_after_a_long_outage() -> None:
    outage = Outage("broker", None, keeps=True)
    outage.succeeded(START)
    found = [notice for minute in range(1, 40) if (notice := outage.failed("no route", minutes(minute)))]
    assert [notice.lost for notice in found] == [None]
    lost = outage.succeeded(minutes(40))
    assert lost is not None
    assert lost.since == START
