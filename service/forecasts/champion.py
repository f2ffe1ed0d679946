"""The version that serves now, swapped the moment another is promoted, and the ones that served before."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from forecasting.forecaster import Forecaster
from service.errors import NoChampion, Unavailable
from service.forecasts.version import Version
from service.forecasts.version_store import VersionStore

_REFRESH_INTERVAL_S = 0.5  # seconds: a new champion is noticed this soon
_MAX_LOADED = 4


@dataclass(frozen=True)
class LoadedModel:
    """A version with its model in memory."""

    version: Version
    forecaster: Forecaster


class ChampionCache:
    """Looks for a new champion at most twice a second and keeps the last few models loaded."""

    def __init__(self, versions: VersionStore, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._versions, self._monotonic = versions, monotonic
        self._lock = Lock()
        self._loaded: OrderedDict[str, LoadedModel] = OrderedDict()
        self._current: LoadedModel | None = None
        self._looked = float("-inf")
        self.last_error: str | None = None

    def current(self) -> LoadedModel:
        """Return what serves now, or raise :class:`NoChampion` if nothing has been learned yet."""
        with self._lock:
            if self._monotonic() - self._looked >= _REFRESH_INTERVAL_S:
                self._look()
                self._looked = self._monotonic()
            if self._current is None:
                raise NoChampion(
                    "No model has been learned yet. Enrol a machine and load its past: "
                    "alarmcast admin enrol SITE/MACHINE --history FILE"
                )
            return self._current

    def invalidate(self) -> None:
        """Look for a new champion at the next chance."""
        self._looked = float("-inf")

    def at(self, at: datetime) -> LoadedModel | None:
        """Return what served at a past moment, or None if nothing did or its weights have been let go.

        What is loaded is not read again: of a large fleet's version there is much to read.
        """
        number = self._versions.number_at(at)
        if number is None:
            return None
        with self._lock:
            kept = next((one.version for one in self._loaded.values() if one.version.id == number), None)
            if kept is not None:
                return self._load(kept)
        version = self._versions.get(number)
        if version.pruned:
            return None
        with self._lock:
            return self._load(version)

    def _look(self) -> None:
        if self._current is not None and self._versions.champion_number() == self._current.version.id:
            self.last_error = None
            return
        version = self._versions.champion()
        try:
            self._current = self._load(version) if version else None
            self.last_error = None
        except Unavailable as error:
            # What serves goes on serving; only a process that has nothing in memory cannot answer.
            self.last_error = str(error)
            if self._current is None:
                raise

    def _load(self, version: Version) -> LoadedModel:
        serving = self._loaded.get(version.weights)
        if serving is None or serving.version.id != version.id:
            serving = LoadedModel(version, self._versions.load(version))
            self._loaded[version.weights] = serving
            if len(self._loaded) > _MAX_LOADED:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(version.weights)
        return serving
