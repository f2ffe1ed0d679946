"""Features as the paper has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.features import alarm_counts, fleet_counts
from forecasting.ragged import FleetSeries
from forecasting.series import AlarmSeries
from forecasting.vocabulary import Columns, Vocabulary


def seen(*codes: int) -> AlarmSeries:
    return AlarmSeries(np.arange(len(codes), dtype=np.int64), np.array(codes, dtype=np.int64))


def test_consecutive_repeats_count_once() -> None:
    assert alarm_counts(seen(1, 1, 2, 1, 1, 1), Columns((1, 2))).tolist() == pytest.approx([2 / 3, 1 / 3])


def test_the_last_code_of_one_machine_does_not_hide_the_first_of_the_next() -> None:
    fleet = FleetSeries.from_series([seen(1, 2), seen(), seen(2, 1)])
    assert fleet_counts(fleet, Columns((1, 2))).tolist() == [[0.5, 0.5], [0.0, 0.0], [0.5, 0.5]]


def test_counts_are_shares_of_all_codes_unknown_ones_included() -> None:
    counts = alarm_counts(seen(1, 1, 2, 99, 1), Columns((2, 1)))
    assert counts.tolist() == pytest.approx([1 / 4, 2 / 4])


def test_an_empty_window_is_the_zero_vector() -> None:
    assert alarm_counts(seen(), Columns((1, 2))).tolist() == [0.0, 0.0]


@given(st.lists(st.integers(0, 9)), st.permutations(range(6)))
def test_shares_of_known_codes_never_exceed_the_whole(codes: list[int], known: list[int]) -> None:
    counts = alarm_counts(seen(*codes), Columns(tuple(known)))
    naive = [code for place, code in enumerate(codes) if place == 0 or codes[place - 1] != code]
    expected = [naive.count(code) / len(naive) if naive else 0.0 for code in known]
    assert counts.tolist() == pytest.approx(expected)


def test_codes_are_appended_so_that_old_columns_keep_their_meaning() -> None:
    grown = Vocabulary((5, 3), (3,)).extend([9, 3, 1], [5])
    assert grown == Vocabulary((5, 3, 1, 9), (3, 5))


def test_a_code_may_stand_in_one_column_only() -> None:
    with pytest.raises(ValueError, match="only once"):
        Vocabulary((1, 1), ())
