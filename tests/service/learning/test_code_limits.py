"""How many codes are learned of a machine: all of an ordinary one, the best supported of one that has too many."""

from datetime import UTC, datetime, timedelta

from forecasting.series import AlarmSeries
from service.learning.dataset import CodeLimits, choose_codes

START = datetime(2026, 1, 5, tzinfo=UTC)
LIMITS = CodeLimits(per_machine=4, days=3)


def series(days_of: dict[int, int], *, times_a_day: int = 1) -> AlarmSeries:
    """Return alarms of each code on so many days."""
    return AlarmSeries.from_alarms(
        (START + timedelta(days=day, minutes=minute), code)
        for code, days in days_of.items()
        for day in range(days)
        for minute in range(times_a_day)
    )


def test_all_codes_of_a_machine_below_the_limit_are_learned_however_rare_they_are() -> None:
    found = choose_codes(series({9: 1, 7: 1, 5: 40, 3: 2}), {5}, LIMITS)
    assert found.codes.tolist() == [3, 5, 7, 9]
    assert (found.unlisted, found.left_out) == ((3, 7, 9), 0)


def test_of_too_many_codes_those_are_learned_that_came_on_most_days() -> None:
    found = choose_codes(series({1: 3, 2: 9, 3: 4, 4: 2, 5: 9, 6: 5, 7: 8}), (), LIMITS)
    assert found.unlisted == (2, 5, 7, 6)
    assert (found.codes.tolist(), found.left_out) == ([2, 5, 6, 7], 3)


def test_of_too_many_codes_none_is_learned_that_came_on_few_days_however_often_it_came_then() -> None:
    flood = series(dict.fromkeys(range(100, 200), 2), times_a_day=50)
    assert choose_codes(flood, (), LIMITS).codes.tolist() == []
    assert choose_codes(flood, (), LIMITS).left_out == 100


def test_codes_of_the_catalogue_always_count_and_take_nobodys_place() -> None:
    listed = set(range(50))
    found = choose_codes(series(dict.fromkeys(range(60), 1) | {70: 3}), listed, LIMITS)
    assert listed <= set(found.codes.tolist())
    assert found.unlisted == (70,)
    assert found.left_out == 10


def test_a_machine_without_alarms_has_no_codes() -> None:
    assert choose_codes(series({}), {1}, LIMITS).codes.tolist() == []
