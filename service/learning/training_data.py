"""A machine's stored events to windows to learn from: what was heard, when, and how it is shared out in time."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from forecasting.history import HistorySpec
from forecasting.series import AlarmSeries
from forecasting.window import Span, WindowSpec, merge_spans
from service.learning.code_limits import ChosenCodes, choose_codes
from service.learning.dataset import Split, covered_moments, split, windows
from service.learning.enrolment import TrainingDataPolicy
from service.learning.windows import WindowSet
from service.machines.event_store import EventStore
from service.machines.models import Machine
from service.machines.store import MachineStore

# A past may come in many files, and between the last alarm of one and the first of the next a machine is quiet;
# for longer than this it is not quiet, but nobody has listened.
_QUIET = timedelta(days=7)


@dataclass(frozen=True, eq=False)
class TrainingData:
    """One machine's windows, cut in time, and the events that they were cut from; which codes they hold."""

    events: AlarmSeries
    chosen: ChosenCodes
    train: WindowSet
    calibration: WindowSet
    exam: WindowSet


@dataclass(frozen=True)
class DatasetBuilder:
    """Cuts windows from the event log, as a live forecast would have seen them."""

    machines: MachineStore
    log: EventStore
    spec: WindowSpec
    policy: TrainingDataPolicy

    def training_windows(self, machine: Machine, now: datetime) -> int:
        """Return how many windows there are to learn from; nothing is read but what was heard when."""
        return len(self._split(self._moments(machine, self._observed(machine, now))).train)

    def build(
        self, machine: Machine, now: datetime, history: HistorySpec, *, listed: Collection[int]
    ) -> TrainingData:
        """Return every covered hourly window of a machine, shared out; one that held nothing counts as well.

        ``listed`` are the codes of the catalogue, which always count; of others only so many do.
        """
        heard = self._observed(machine, now)
        start = heard[0] if heard else now
        series = self.log.series(machine, start, now)
        chosen = choose_codes(series, listed, self.policy.codes)
        whole = windows(
            series,
            self._moments(machine, heard),
            self.spec,
            since=start,
            history=history,
            tracked=chosen.codes.tolist(),
            chosen=chosen.codes,
        )
        parts = self._split(whole.at)
        return TrainingData(
            series, chosen, whole.take(parts.train), whole.take(parts.calibration), whole.take(parts.exam)
        )

    def _split(self, at: NDArray[np.int64]) -> Split:
        exam = self.policy.exam
        return split(at, self.spec.horizon, calibration=self.policy.calibration * (1 - exam), exam=exam)

    def _moments(self, machine: Machine, heard: Span | None) -> NDArray[np.int64]:
        if heard is None:
            return np.zeros(0, dtype=np.int64)
        return covered_moments(heard, self.spec, deaf=self._unobserved(machine, heard))

    def _observed(self, machine: Machine, now: datetime) -> Span | None:
        """Return from when to when the machine was heard, as far back as events are kept."""
        spans = self._observed_spans(machine)
        if not spans:
            return None
        first, last = min(start for start, _ in spans), max(end for _, end in spans)
        return max(first, now - self.policy.keep), min(last, now)

    def _unobserved(self, machine: Machine, heard: Span) -> list[Span]:
        """Return when nobody listened: the agent's gaps, and between a loaded past and the first agent."""
        gaps = [(gap.first_at, gap.last_at) for gap in self.log.gaps(machine, *heard)]
        spans = merge_spans(self._observed_spans(machine))
        between = [(end, start) for (_, end), (start, _) in pairwise(spans)]
        return gaps + [span for span in between if span[1] - span[0] > _QUIET]

    def _observed_spans(self, machine: Machine) -> list[Span]:
        """Return when somebody listened: over each history file and spool, and while the agent was there."""
        spans = self.log.spans(machine)
        agent = self.machines.agent(machine)
        if spans and agent is not None and agent.since is not None:
            spans.append((agent.since, max(agent.since, agent.last_seen_at)))
        return spans
