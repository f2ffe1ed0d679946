"""The words in which states are told: the API, the store and the flows use the same."""

from enum import StrEnum


class MachineState(StrEnum):
    """How far a machine is on the way to a model that knows it; until it is live the fleet's model serves it."""

    REGISTERED = "registered"  # nothing has been heard of it yet
    COLLECTING = "collecting"  # heard, but not yet for long enough to learn from
    LEARNING = "learning"
    LIVE = "live"
    FAILED = "failed"  # with a reason; the fleet's model serves it, if there is one
    RETIRED = "retired"


class HistoryState(StrEnum):
    """What happens to the file of a machine's past that is being loaded."""

    IDLE = "idle"  # nothing is being loaded
    RECEIVING = "receiving"  # it is on its way, or looked through before a row of it is stored
    STORING = "storing"


class JobKind(StrEnum):
    """Why a machine is learned."""

    ENROL = "enrol"
    REFRESH = "refresh"  # again, from recent windows, as the same task


class JobState(StrEnum):
    """How far a job is."""

    COLLECTING = "collecting"  # waits until the machine has been heard for long enough
    QUEUED = "queued"
    RUNNING = "running"
    PROMOTED = "promoted"  # the new version serves
    REJECTED = "rejected"  # the gate kept the new version out; the champion serves on
    FAILED = "failed"  # nothing came of it; the message says why
    CANCELLED = "cancelled"


class Standing(StrEnum):
    """What became of a version."""

    CHAMPION = "champion"  # it serves
    PROMOTED = "promoted"  # it has served
    REJECTED = "rejected"  # the gate kept it out, with its reasons


class Grouping(StrEnum):
    """What a scoreboard has a line for."""

    MACHINE = "machine"
    CODE = "code"
    VERSION = "version"
    MACHINE_AND_CODE = "machine_and_code"
