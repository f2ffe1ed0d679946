"""Levels of a probability, and which alarm is looked at first."""

import pytest

from service.forecasts.alarm_value import alarm_value
from wire.forecasts import forecast_level


@pytest.mark.parametrize(
    ("probability", "base_rate", "level"),
    [
        (0.5, 0.9, "expected"),
        (0.4999, 0.3, "usual"),
        (0.4, 0.2, "elevated"),
        (0.1, 0.05, "elevated"),
        (0.0999, 0.0, "usual"),
        (0.1, 0.0, "elevated"),
        (0.4, None, "usual"),
        (0.6, None, "expected"),
    ],
)
def test_a_level_compares_with_a_half_and_with_the_usual_rate(
    probability: float, base_rate: float | None, level: str
) -> None:
    assert forecast_level(probability, base_rate) == level


@pytest.mark.parametrize(
    ("severity", "probability", "base_rate", "value"),
    [
        ("high", 0.6, 0.2, 3.6),
        ("low", 0.6, 0.2, 1.2),
        ("medium", 0.6, None, 1.2),
        ("low", 0.5, 0.0, 2.0),
        ("low", 0.5, 0.001, 2.0),
        ("high", 0.9, 0.9, 0.0),
        ("high", 0.6, 0.8, 0.0),
        ("high", 0.09, 0.001, 0.0),
    ],
)
def test_a_value_is_severity_times_probability_times_how_far_above_usual(
    severity: str, probability: float, base_rate: float | None, value: float
) -> None:
    assert alarm_value(severity, probability, base_rate) == pytest.approx(value)
