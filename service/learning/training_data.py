"""Build the training data of a machine from its stored events."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from math import ceil
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from forecasting.history import HistorySpec
from forecasting.window import Span, WindowSpec, merge_spans
from service.learning.dataset import (
    CodeLimits,
    Split,
    TrainingData,
    choose_codes,
    covered_moments,
    split,
    windows,
)
from service.machines.event_store import EventStore
from service.machines.models import Machine
from service.machines.store import MachineStore
from service.settings import Settings

# Between two history files a machine may be quiet for this long; a longer pause counts as unobserved.
_MAX_QUIET: Final = timedelta(days=7)


def window_spec(settings: Settings) -> WindowSpec:
    """Return how far forecasts look back and ahead."""
    return WindowSpec(timedelta(minutes=settings.lookback_minutes), timedelta(minutes=settings.horizon_minutes))


@dataclass(frozen=True)
class TrainingDataPolicy:
    """How a machine's windows are split in time, and how many are needed.

    The last ``holdout`` share is never trained on. Of the rest, the last ``calibration`` share is used to
    calibrate. At least ``min_windows`` must remain for training: two weeks, so that a weekly pattern can be seen.
    """

    holdout: float = 0.3
    calibration: float = 0.15
    min_windows: int = 336
    keep: timedelta = timedelta(days=400)
    codes: CodeLimits = field(default_factory=CodeLimits)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        codes = CodeLimits(settings.max_codes_per_machine, settings.max_codes_per_model, settings.min_code_days)
        keep = timedelta(days=settings.retention_days)
        return cls(min_windows=settings.min_training_windows, keep=keep, codes=codes)

    def days_until_enough(self, windows: int) -> int:
        """Return about how many more days of data a machine with this many training windows needs."""
        share = (1 - self.holdout) * (1 - self.calibration)
        return ceil(max(self.min_windows - windows, 0) / share / 24)


@dataclass(frozen=True)
class DatasetBuilder:
    """Cuts windows from the event log, with the input that a live forecast would have had."""

    machines: MachineStore
    events: EventStore
    spec: WindowSpec
    policy: TrainingDataPolicy

    def training_windows(self, machine: Machine, now: datetime) -> int:
        """Return the number of training windows; reads the observed spans only, not the events."""
        return len(self._split(self._moments(machine, self._observed(machine, now), self.spec)).train)

    def build(
        self, machine: Machine, now: datetime, history: HistorySpec, *, listed: Collection[int]
    ) -> TrainingData:
        """Return every covered hourly window of a machine, empty ones too, split in time.

        ``listed`` are the codes of the catalogue, which always count; the number of others is limited.
        """
        observed = self._observed(machine, now)
        start = observed[0] if observed else now
        series = self.events.series(machine, start, now)
        chosen = choose_codes(series, listed, self.policy.codes)
        at = self._moments(machine, observed, self.spec)
        far = replace(self.spec, horizon=self.spec.far)
        whole = windows(
            series,
            at,
            self.spec,
            since=start,
            history=history,
            tracked=chosen.codes.tolist(),
            chosen=chosen.codes,
            far_known=np.isin(at, self._moments(machine, observed, far)),
        )
        train, calibration, holdout = self._split(whole.at).cut(whole, self.spec.far)
        return TrainingData(
            machine=str(machine.id),
            train=train,
            calibration=calibration,
            holdout=holdout,
            unlisted=chosen.unlisted,
            left_out=chosen.left_out,
            fingerprint=_fingerprint([series.times, series.codes, train.at, calibration.at, holdout.at]),
        )

    def _split(self, at: NDArray[np.int64]) -> Split:
        holdout = self.policy.holdout
        return split(at, self.spec.horizon, calibration=self.policy.calibration * (1 - holdout), holdout=holdout)

    def _moments(self, machine: Machine, observed: Span | None, spec: WindowSpec) -> NDArray[np.int64]:
        if observed is None:
            return np.zeros(0, dtype=np.int64)
        return covered_moments(observed, spec, unobserved=self._unobserved(machine, observed))

    def _observed(self, machine: Machine, now: datetime) -> Span | None:
        """Return the whole time in which the machine was observed, as far back as events are kept."""
        spans = self._observed_spans(machine)
        if not spans:
            return None
        first, last = min(start for start, _ in spans), max(end for _, end in spans)
        return max(first, now - self.policy.keep), min(last, now)

    def _unobserved(self, machine: Machine, observed: Span) -> list[Span]:
        """Return the agent's gaps, and the pauses between history files and the first agent."""
        gaps = [(gap.first_at, gap.last_at) for gap in self.events.gaps(machine, *observed)]
        spans = merge_spans(self._observed_spans(machine))
        pauses = [(end, start) for (_, end), (start, _) in pairwise(spans)]
        return gaps + [(start, end) for start, end in pauses if end - start > _MAX_QUIET]

    def _observed_spans(self, machine: Machine) -> list[Span]:
        """Return the span of each history file and spool, and the time in which the agent was connected."""
        spans = self.events.spans(machine)
        agent = self.machines.agent(machine)
        if spans and agent is not None and agent.since is not None:
            spans.append((agent.since, max(agent.since, agent.last_seen_at)))
        return spans


def _fingerprint(arrays: list[NDArray[np.int64]]) -> str:
    """Return a digest that is the same for the same events and windows."""
    digest = sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(len(array).to_bytes(8, "big"))
    return digest.hexdigest()
