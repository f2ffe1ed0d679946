"""The alarms page's URL: every range of days gives a valid query."""

from datetime import UTC, datetime

import pytest

from service.page.alarms.view import View

NOW = datetime(2026, 11, 16, 8, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("0001-01-01", "9999-12-31"),
        ("9999-12-31", "9999-12-31"),
        ("0001-01-01", "0001-01-01"),
        ("275000-01-01", "x"),
    ],
)
def test_days_out_of_range_are_clamped(first: str, last: str, zone: str) -> None:
    query = View.of({"span": "custom", "first": first, "last": last}).query(NOW, zone)
    assert query.since < query.until
    assert 2000 <= query.since.year <= query.until.year <= 2099


def test_days_in_range_are_kept() -> None:
    query = View.of({"span": "custom", "first": "2026-11-01", "last": "2026-11-02"}).query(NOW, "Europe/Rome")
    assert query.since == datetime(2026, 10, 31, 23, tzinfo=UTC)
    assert query.until == datetime(2026, 11, 2, 23, tzinfo=UTC)
