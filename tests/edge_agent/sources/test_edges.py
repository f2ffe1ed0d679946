"""Edges of signals: raised once, cleared once, and nothing that only flickers."""

from datetime import UTC, datetime, timedelta

from edge_agent.sources.edges import EdgeDetector

START = datetime(2026, 11, 16, 8, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def read(detector: EdgeDetector, seconds: float, *names: str) -> list[tuple[float, str, bool]]:
    edges = detector.update("word", names, at(seconds), seconds)
    return [((edge.at - START).total_seconds(), edge.name, edge.raised) for edge in edges]


def test_alarm_is_raised_once_and_cleared_once() -> None:
    detector = EdgeDetector()
    assert read(detector, 0, "a") == [(0, "a", True)]
    assert read(detector, 1, "a") == []
    assert read(detector, 2) == [(2, "a", False)]
    assert read(detector, 3, "a") == [(3, "a", True)]


def test_code_word_that_changes_clears_one_alarm_and_raises_another() -> None:
    detector = EdgeDetector()
    read(detector, 0, "5")
    assert read(detector, 1, "7") == [(1, "5", False), (1, "7", True)]


def test_alarm_that_was_known_before_a_restart_is_not_raised_again() -> None:
    before = EdgeDetector()
    read(before, 0, "a", "b")
    after = EdgeDetector(known=before.signals())
    assert read(after, 9, "a", "c") == [(9, "b", False), (9, "c", True)]


def test_change_shorter_than_the_debounce_time_is_ignored() -> None:
    detector = EdgeDetector(debounce=2)
    assert read(detector, 0, "a") == []
    assert read(detector, 1) == []
    assert read(detector, 5, "a") == []
    assert read(detector, 6, "a") == []
    assert read(detector, 7, "a") == [(5, "a", True)]


def test_change_counts_after_the_debounce_time_without_another_reading() -> None:
    detector = EdgeDetector(debounce=2)
    read(detector, 0, "a")
    assert detector.settle(1.9) == []
    assert [edge.name for edge in detector.settle(2)] == ["a"]
    assert detector.settle(9) == []


def test_signals_do_not_clear_each_others_alarms() -> None:
    detector = EdgeDetector()
    read(detector, 0, "a")
    assert [edge.name for edge in detector.update("other", ["b"], at(1), 1)] == ["b"]
    assert detector.signals() == {"word": ["a"], "other": ["b"]}
