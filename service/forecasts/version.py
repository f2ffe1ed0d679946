"""A learned model as the store knows it, and what it forecast."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.errors import Conflict
from wire.identity import MachineId


@dataclass(frozen=True)
class Version:
    """One learned model; ``weights`` is the sha256 that names its file, ``parent`` the one it started from.

    ``learned`` are the machines it knows, oldest first, ``targets`` the codes it forecasts, in order.
    """

    id: int
    created_at: datetime
    weights: str
    report: dict[str, Any]
    promoted_at: datetime | None = None
    parent: int | None = None
    learned: tuple[str, ...] = ()
    targets: tuple[int, ...] = ()
    pruned: bool = False

    @property
    def name(self) -> str:
        """How people call it."""
        return f"v{self.id}"

    def has_learned(self, machine: MachineId) -> bool:
        """Say whether it has learned a machine."""
        return str(machine) in self._known

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.learned)


@dataclass(frozen=True, eq=False)
class StoredForecast:
    """A forecast as it was served: probabilities in the order of its version's target codes.

    ``other_horizons`` has two rows, the near and the far horizon, if the version forecasts three.
    """

    machine: int
    as_of: datetime
    version: int
    status: str
    events_seen: int
    coverage: float
    probabilities: NDArray[np.float32]
    other_horizons: NDArray[np.float32] | None = None


def champion_changed_error(champion: int | None, *, believed: int | None) -> Conflict:
    """Return the refusal of a change that was decided while another version served."""
    now = f"v{champion} serves by now" if champion is not None else "Nothing serves"
    return Conflict(f"{now}, not v{believed}: somebody was faster. Nothing was changed; look again, then decide.")
