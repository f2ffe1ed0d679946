"""Window arithmetic: input window, label window, time grid and coverage."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from forecasting.series import AlarmSeries

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Span = tuple[datetime, datetime]


@dataclass(frozen=True)
class WindowSpec:
    """Length of the input window and of the horizon; by default the paper's D_in and D_out."""

    lookback: timedelta = timedelta(minutes=1720)
    horizon: timedelta = timedelta(minutes=480)

    def __post_init__(self) -> None:
        if self.lookback <= timedelta(0) or self.horizon <= timedelta(0):
            raise ValueError("Lookback and horizon must be positive.")

    @property
    def near(self) -> timedelta:
        """The shorter horizon that is forecast beside the main one."""
        return self.horizon / 4

    @property
    def far(self) -> timedelta:
        """The longer horizon that is forecast beside the main one."""
        return self.horizon * 3

    @property
    def horizon_names(self) -> tuple[str, str, str]:
        """The three horizons as forecasts name them: 2h, 8h and 24h by default."""
        near, main, far = (_name(span) for span in (self.near, self.horizon, self.far))
        return near, main, far


def _name(span: timedelta) -> str:
    hours = span / timedelta(hours=1)
    return f"{hours:.0f}h" if hours.is_integer() else f"{span / timedelta(minutes=1):g}min"


def input_window(series: AlarmSeries, at: datetime, spec: WindowSpec) -> AlarmSeries:
    """Return the alarms in ``[at - lookback, at)``.

    Half-open, so an alarm exactly at ``at`` is a label and never a feature.
    """
    return series.between(at - spec.lookback, at)


def label_window(series: AlarmSeries, at: datetime, spec: WindowSpec) -> AlarmSeries:
    """Return the alarms in ``[at, at + horizon)``: what a forecast made at ``at`` is about."""
    return series.between(at, at + spec.horizon)


def grid_floor(at: datetime, step: timedelta) -> datetime:
    """Return the last moment of the grid of ``step`` since 1970 that is not after ``at``."""
    return at - (at - _EPOCH) % step


def grid(start: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    """Yield the grid's moments in ``[start, end]``, ascending."""
    at = grid_floor(start, step)
    if at < start:
        at += step
    while at <= end:
        yield at
        at += step


def coverage(at: datetime, spec: WindowSpec, *, observed: Span | None, unobserved: Iterable[Span] = ()) -> float:
    """Return the share of the input window in which the machine was observed.

    ``observed`` is the span from the first alarm to the agent's last message; ``unobserved`` are the spans whose
    events were lost. Silence counts as evidence only while the machine was observed.
    """
    if observed is None:
        return 0.0
    start, end = max(at - spec.lookback, observed[0]), min(at, observed[1])
    if start >= end:
        return 0.0
    lost = sum(
        (min(b, end) - max(a, start) for a, b in merge_spans(unobserved) if a < end and b > start), timedelta(0)
    )
    return (end - start - lost) / spec.lookback


def merge_spans(spans: Iterable[Span]) -> Sequence[Span]:
    """Return the spans in time order, with touching ones merged."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
