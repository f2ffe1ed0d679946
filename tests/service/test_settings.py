"""Settings that are more than a number."""

from datetime import time

import pytest

from service.bootstrap.configuration import load_settings
from service.errors import InputRejected


def test_there_are_three_shifts_unless_told_otherwise() -> None:
    assert load_settings().shift_starts == {"early": time(6), "late": time(14), "night": time(22)}


def test_shifts_can_be_set_in_any_order() -> None:
    two = load_settings(shifts="night=18:30, day=06:30")
    assert list(two.shift_starts.items()) == [("day", time(6, 30)), ("night", time(18, 30))]
    assert load_settings(shifts="all=00:00").shift_starts == {"all": time(0)}


@pytest.mark.parametrize(
    "shifts",
    [
        "",
        "early",
        "early=6:00",
        "early=24:00",
        "early=06:60",
        "Early=06:00",
        "a=06:00,,b=07:00",
        "a=06:00;b=07:00",
        "a=06:00,a=07:00",
        "a=06:00,b=06:00",
        "a\n=06:00",
    ],
)
def test_shifts_that_cannot_be_are_refused_with_a_sentence(shifts: str) -> None:
    with pytest.raises(InputRejected, match=r"The setting shifts \(ALARMCAST_SHIFTS\) is wrong: .*\."):
        load_settings(shifts=shifts)
