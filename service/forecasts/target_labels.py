"""Probabilities to likely alarms: the catalogue's words, looked up once a pass, and the level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting.forecaster import Forecaster
from forecasting.network import Matrix
from forecasting.series import AlarmSeries
from service.machines.catalogue import CatalogueEntry, unknown_code
from wire.enums import EntryOrigin
from wire.forecasts import EXPECTED_FROM, LikelyAlarm, forecast_level

_DIGITS = 4


class _Target(NamedTuple):
    """What is said of a code, whichever machine it is about."""

    code: int
    text: str
    severity: str


@dataclass(frozen=True)
class TargetLabels:
    """The codes that are still to be forecast, each with its column in the network."""

    columns: NDArray[np.intp]
    words: tuple[_Target, ...]
    horizons: tuple[str, str, str]

    @classmethod
    def build(cls, model: Forecaster, entries: Mapping[int, CatalogueEntry]) -> "TargetLabels":
        """Look up every target code."""
        targets = model.vocabulary.targets
        columns = [column for column, code in enumerate(targets) if is_target(code, entries)]
        words = []
        for column in columns:
            entry = entries.get(targets[column]) or unknown_code(targets[column])
            words.append(_Target(targets[column], entry.text, entry.severity))
        return cls(np.array(columns, dtype=np.intp), tuple(words), model.spec.horizon_names)

    def alarms(
        self, probabilities: Matrix, base_rates: Matrix | None, by_horizon: Matrix | None = None
    ) -> list[LikelyAlarm]:
        """Put words to a machine's probabilities, most likely first."""
        said = probabilities[self.columns]
        order = np.argsort(-said, kind="stable").tolist()
        shares = _rounded(said)
        usual = [None] * len(shares) if base_rates is None else _rounded(base_rates[self.columns])
        within = self._within(by_horizon)
        return [
            LikelyAlarm(
                code=word.code,
                text=word.text,
                severity=word.severity,
                probability=shares[place],
                base_rate=usual[place],
                threshold=EXPECTED_FROM,
                expected=shares[place] >= EXPECTED_FROM,
                level=forecast_level(shares[place], usual[place]),
                within=within[place],
            )
            for place, word in ((place, self.words[place]) for place in order)
        ]

    def _within(self, by_horizon: Matrix | None) -> Sequence[dict[str, float] | None]:
        if by_horizon is None:
            return [None] * len(self.words)
        rows = np.round(by_horizon[self.columns].astype(np.float64), _DIGITS).tolist()
        return [dict(zip(self.horizons, row, strict=True)) for row in rows]


def is_target(code: int, entries: Mapping[int, CatalogueEntry]) -> bool:
    """Say whether a target is still to be forecast; one that is not keeps its column in the network."""
    return code not in entries or entries[code].target or entries[code].origin is EntryOrigin.MACHINE


def _rounded(shares: Matrix) -> list[float]:
    return [round(share, _DIGITS) for share in shares.tolist()]


def label_matrix(
    series: AlarmSeries, start: NDArray[np.int64], end: NDArray[np.int64], codes: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return spans by codes: whether ``[start, end)`` of each span (microseconds) held each code."""
    held = np.zeros((len(start), len(codes)), dtype=np.bool_)
    for column, code in enumerate(codes):
        times = series.times[series.codes == code]
        held[:, column] = np.searchsorted(times, end) > np.searchsorted(times, start)
    return held
