"""The alarms page's address: whatever days it names, there is a question to ask."""

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
def test_days_out_of_reach_become_the_nearest_within(first: str, last: str, zone: str) -> None:
    question = View.of({"span": "own", "first": first, "last": last}).question(NOW, zone)
    assert question.since < question.until
    assert 2000 <= question.since.year <= question.until.year <= 2099


def test_days_within_reach_stay_as_they_are() -> None:
    question = View.of({"span": "own", "first": "2026-11-01", "last": "2026-11-02"}).question(NOW, "Europe/Rome")
    assert question.since == datetime(2026, 10, 31, 23, tzinfo=UTC)
    assert question.until == datetime(2026, 11, 2, 23, tzinfo=UTC)
