"""What processes of one Alarmcast tell each other, so that none has to wait until it looks."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ChangeKind(StrEnum):
    """What has happened elsewhere."""

    EVENTS_STORED = "arrived"  # something was committed for some machines
    CHAMPION_CHANGED = "champion"  # another version serves
    PERMISSIONS_CHANGED = "rights"  # somebody's rights, password or session have changed
    HISTORY_LOADED = "loaded"  # a machine's past was loaded
    SUPPRESSION_CHANGED = "hushed"  # what keeps alarms quiet has changed
    JOBS = "jobs"  # a job has changed


@dataclass(frozen=True)
class ChangeEvent:
    """What has happened, with a few plain values."""

    kind: ChangeKind
    body: dict[str, Any] = field(default_factory=dict)
