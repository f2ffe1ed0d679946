"""Two agents of one name: a new spool is none, a voice that comes back is."""

from datetime import timedelta
from uuid import uuid4

from service.ingest.duplicate_agents import DuplicateAgentDetector
from tests.service.conftest import FILLER, NOW

OLD, NEW = uuid4(), uuid4()


def test_a_spool_that_was_replaced_is_no_twin() -> None:
    twins = DuplicateAgentDetector()
    assert twins.accept(FILLER, OLD, online=True, at=NOW)
    assert twins.accept(FILLER, OLD, online=False, at=NOW)
    assert twins.accept(FILLER, NEW, online=True, at=NOW)
    assert twins.recent(NOW) == []


def test_a_voice_that_comes_back_after_another_is_a_twin_for_a_day() -> None:
    twins = DuplicateAgentDetector()
    for epoch in (OLD, NEW, OLD):
        assert twins.accept(FILLER, epoch, online=True, at=NOW)
    assert twins.recent(NOW) == [FILLER]
    assert twins.recent(NOW + timedelta(days=2)) == []


def test_a_farewell_without_a_greeting_is_a_twin_that_gave_way() -> None:
    twins = DuplicateAgentDetector()
    twins.accept(FILLER, OLD, online=True, at=NOW)
    assert not twins.accept(FILLER, NEW, online=False, at=NOW)
    assert twins.recent(NOW) == [FILLER]
    assert twins.accept(FILLER, OLD, online=False, at=NOW)


def test_the_farewell_of_a_displaced_agent_does_not_take_the_present_one_offline() -> None:
    twins = DuplicateAgentDetector()
    twins.accept(FILLER, OLD, online=True, at=NOW)
    twins.accept(FILLER, NEW, online=True, at=NOW)
    assert not twins.accept(FILLER, OLD, online=False, at=NOW)
    assert twins.accept(FILLER, NEW, online=False, at=NOW)
    assert twins.recent(NOW) == []


def test_two_processes_of_one_copied_spool_are_twins_and_a_restart_is_none() -> None:
    twins = DuplicateAgentDetector()
    for instance in ("a", "b"):
        assert twins.accept(FILLER, OLD, online=True, at=NOW, instance=instance)
    assert not twins.accept(FILLER, OLD, online=False, at=NOW, instance="a"), "a will"
    assert twins.accept(FILLER, OLD, online=False, at=NOW), "what the service says for an agent it locks out"
    assert twins.pair(FILLER, NOW) is None
    assert twins.accept(FILLER, OLD, online=True, at=NOW, instance="a")
    assert twins.pair(FILLER, NOW) == ("b", "a")
    assert twins.pair(FILLER, NOW + timedelta(seconds=1)) is None
    assert twins.recent(NOW) == [FILLER]


def test_an_agent_that_says_that_it_gave_way_is_a_twin_at_once() -> None:
    twins = DuplicateAgentDetector()
    for instance in ("a", "b"):
        twins.accept(FILLER, OLD, online=True, at=NOW, instance=instance)
    assert not twins.accept(FILLER, OLD, online=False, at=NOW, instance="a", gave_way=True)
    assert twins.pair(FILLER, NOW) == ("b", "a")


def test_an_agent_that_makes_up_spools_without_end_is_remembered_by_a_hundred_of_them() -> None:
    twins = DuplicateAgentDetector()
    for _ in range(500):
        twins.accept(FILLER, uuid4(), online=True, at=NOW)
        twins.accept(FILLER, uuid4(), online=False, at=NOW)
    (voices,) = twins._speakers.values()  # noqa: SLF001 - what it costs cannot be seen from outside
    assert len(voices.before) == 100
    assert len(voices.parted) <= 100
