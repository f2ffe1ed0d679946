"""Which clock machines of several zones are read by, and its name."""

from datetime import UTC, datetime

import pytest

from wire.zones import common_zone, zone_word


@pytest.mark.parametrize(
    ("zones", "common"),
    [
        ([], "UTC"),
        (["Europe/Rome"], "Europe/Rome"),
        (["Europe/Rome", "Asia/Tokyo", "Asia/Tokyo"], "Asia/Tokyo"),
        (["Europe/Rome", "Europe/Paris"], "Europe/Paris"),
    ],
)
def test_the_common_zone_is_that_of_most_machines(zones: list[str], common: str) -> None:
    assert common_zone(zones) == common


@pytest.mark.parametrize(
    ("month", "zone", "word"),
    [
        (1, "Europe/Rome", "CET"),
        (7, "Europe/Rome", "CEST"),
        (1, "UTC", "UTC"),
        (1, "America/Sao_Paulo", "GMT-03"),
    ],
)
def test_a_zone_is_named_as_it_is_at_that_moment(month: int, zone: str, word: str) -> None:
    assert zone_word(datetime(2026, month, 1, tzinfo=UTC), zone) == word
