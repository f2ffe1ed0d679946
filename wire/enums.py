"""States as the API, the database and the code name them."""

from enum import StrEnum


class MachineState(StrEnum):
    """How far a machine is on the way to a model that knows it; until it is live the fleet's model serves it."""

    REGISTERED = "registered"  # no event yet
    COLLECTING = "collecting"  # observed, but not yet for long enough to learn from
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

    COLLECTING = "collecting"  # waits until the machine has been observed for long enough
    QUEUED = "queued"
    RUNNING = "running"
    PROMOTED = "promoted"  # the new version serves
    REJECTED = "rejected"  # the gate kept the new version out; the champion serves on
    FAILED = "failed"  # nothing came of it; the message says why
    CANCELLED = "cancelled"


class VersionStatus(StrEnum):
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
    DAY = "day"  # in UTC, by when the forecast was made


class Horizon(StrEnum):
    """One of the three horizons of a forecast."""

    NEAR = "near"  # a quarter of the main one
    MAIN = "main"
    FAR = "far"  # three times the main one


class ConnectionStatus(StrEnum):
    """Connection status of a machine, from its agent and its usual alarm rate."""

    ONLINE = "online"  # its agent is online and was seen lately
    SILENT = "silent"  # its agent is well, but its alarms have stopped against its rhythm
    STALE = "stale"  # its agent was online, but has sent nothing for too long
    OFFLINE = "offline"  # its agent, or the agent's will, said so
    NEVER = "never"  # its agent was never seen


class StreamKind(StrEnum):
    """What a stream of events may tell."""

    FORECAST = "forecast"
    ALARM = "alarm"


class PartKind(StrEnum):
    """What a part of an explanation is about."""

    ALARM = "alarm"  # how much of the evidence is this code
    RECENCY = "recency"  # when the forecast alarm itself was last seen
    HABIT = "habit"  # how regularly the forecast alarm itself comes
    CONDITION = "condition"  # how busy the machine as a whole is
    OTHERS = "others"  # all smaller parts together


class RateBand(StrEnum):
    """How many alarms a machine raises in a day, in the bands of ISA-18.2."""

    ACCEPTABLE = "acceptable"  # at most 150: "very likely to be acceptable"
    MANAGEABLE = "manageable"  # more, up to the "maximum manageable"
    EXCESSIVE = "excessive"  # 300 and more


class AlarmMetricsGrouping(StrEnum):
    """What alarm figures have a line for; days, hours of the day and shifts are the plant's own."""

    SITE = "site"
    MACHINE = "machine"
    SHIFT = "shift"
    CODE = "code"
    DAY = "day"
    HOUR = "hour"


class BucketLength(StrEnum):
    """How long a bucket of an alarm rate is."""

    HOUR = "hour"
    DAY = "day"


class Severity(StrEnum):
    """How bad an alarm is, as the catalogue says, mildest first."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Answer(StrEnum):
    """What an operator answers to a notification or an expected alarm."""

    HANDLED = "handled"
    USEFUL = "useful"  # but nothing was done
    WRONG = "wrong"


class NotificationEnd(StrEnum):
    """Why a notification was closed."""

    OCCURRED = "occurred"  # the alarm was raised
    CLEARED = "cleared"  # its probability dropped clearly below the threshold of the policy
    SHELVED = "shelved"  # the alarm was shelved on this machine
    MAINTENANCE = "maintenance"  # a maintenance window started
    EXPIRED = "expired"  # its horizon passed while the machine was offline
    WITHDRAWN = "withdrawn"  # the alarm or the machine is no longer forecast, or the policy is gone
    SHIFT_ENDED = "shift_ended"  # held back by the limit of a shift that is over


class DeliveryState(StrEnum):
    """State of a delivery to a webhook."""

    WAITING = "waiting"  # in progress, or will be retried
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"  # its answer says why


class Role(StrEnum):
    """Roles, least permissions first: read, operate, administer."""

    VIEWER = "viewer"  # looks
    OPERATOR = "operator"  # acknowledges, shelves, plans maintenance, replays
    ADMIN = "admin"  # enrols and erases machines, promotes models, makes users and keys

    def covers(self, least: "Role") -> bool:
        """Say whether this role may do what asks for at least that one."""
        order = list(Role)
        return order.index(self) >= order.index(least)


class PrincipalKind(StrEnum):
    """By what the service knows who asks."""

    SESSION = "session"  # a person who signed in
    KEY = "key"  # a program with an API key
    LOCAL = "local"  # a user who can read the service's data folder
    SYSTEM = "system"  # the service itself


class CredentialState(StrEnum):
    """Whether a machine is let in at the broker, as far as that is the service's to say."""

    NONE = "none"  # none were ever issued
    ACTIVE = "active"
    LOCKED_OUT = "locked_out"  # the broker has lost its password or keeps it out; new ones must be issued
    REVOKED = "revoked"


class ProcessRole(StrEnum):
    """What a process of the service does; one that does everything has all of them."""

    API = "api"  # answers over REST and shows the pages
    INGEST = "ingest"  # takes alarms from the broker
    WORKER = "worker"  # learns, and in turn does what is done once: forecasts on the grid, scores, retention


class EntryOrigin(StrEnum):
    """Who wrote an entry of the catalogue: an admin, or a machine whose agent described the code."""

    ADMIN = "admin"
    MACHINE = "machine"
