"""What can go wrong, drawn once; the web handler, the ingester and the command line read these attributes.

ServiceError
├── InputRejected        wrong, and will stay wrong            422 / quarantine
│   ├── NotFound         no such machine, version or page      404
│   ├── Conflict         contradicts what is known already     409
│   ├── Gone             the machine has been retired          410
│   ├── TooLarge         more than may be sent at once         413
│   ├── NotSignedIn      no valid credentials                   401
│   └── Forbidden        known, but not allowed to do this     403
├── Unavailable          try again later                       503 / retry
│   ├── NoChampion       no model has been learned yet         503
│   ├── TooMany          more often than is allowed            429
│   └── DatabaseDamaged  the file is not what was written      503
├── DatabaseInUse        another process holds the database    (command line)
├── WrongSchema          another version's database, or no one's   (command line)
├── TrainingFailed       the update broke, the old model serves
├── LeaseLost            another worker has the job now        (worker)
└── ChampionChanged      learned on what no longer serves      (worker)
"""

import math
from typing import ClassVar

from wire.identity import MachineId


class ServiceError(Exception):
    """The message is a sentence that says what to do; ``status`` and ``title`` are its HTTP face."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"


class InputRejected(ServiceError):
    """The request is wrong and will stay wrong; ``pointer`` says which part of it, where that is known."""

    status = 422
    title = "Input rejected"

    def __init__(self, message: str, *, pointer: str | None = None) -> None:
        super().__init__(message)
        self.pointer = pointer


class NotFound(InputRejected):
    """What was asked for does not exist."""

    status = 404
    title = "Not found"


class Conflict(InputRejected):
    """What was asked for contradicts what is known."""

    status = 409
    title = "Conflict"


class Gone(InputRejected):
    """What was asked for has been let go."""

    status = 410
    title = "Gone"


class TooLarge(InputRejected):
    """More was sent than is taken at once."""

    status = 413
    title = "Too large"


class NotSignedIn(InputRejected):
    """Who asks is not known, or not any more."""

    status = 401
    title = "Not signed in"


class Forbidden(InputRejected):
    """Who asks is known and may not do this."""

    status = 403
    title = "Forbidden"


class Unavailable(ServiceError):
    """It may work later; ``retry_after`` seconds is a fair guess at when."""

    status = 503
    title = "Unavailable"
    retry_after: int = 5


class TooMany(Unavailable):
    """Asked more often than is allowed; ``retry_after`` says when it is allowed again."""

    status = 429
    title = "Too many requests"

    def __init__(self, message: str, *, wait: float) -> None:
        super().__init__(message)
        self.retry_after = max(1, math.ceil(wait))


class NoChampion(Unavailable):
    """No model has been learned yet, so nothing can be forecast."""

    title = "No model yet"
    retry_after = 60


class DatabaseDamaged(Unavailable):
    """The database file is damaged; only a person can mend that."""

    title = "Database damaged"
    retry_after = 300


class DatabaseInUse(ServiceError):
    """Another process writes to the SQLite file; ``url`` is the address of its API, if known.

    ``certificate`` is the file of the certificate that it shows there, where it speaks TLS.
    """

    title = "Database in use"

    def __init__(self, message: str, url: str | None = None, certificate: str | None = None) -> None:
        super().__init__(message)
        self.url = url
        self.certificate = certificate


class WrongSchema(ServiceError):
    """The database is a newer version's, or not Alarmcast's at all."""

    title = "Wrong schema"


class TrainingFailed(ServiceError):
    """The update broke; what served before serves on. The message names no machine; ``detail`` may name any."""

    title = "Training failed"

    def __init__(self, message: str, *, detail: str | None = None) -> None:
        super().__init__(message if detail is None else f"{message} {detail}")
        self.message = message
        self.detail = detail


class LeaseLost(ServiceError):
    """The job is no longer this worker's; nothing it does may be kept."""

    title = "Lease lost"


class ChampionChanged(ServiceError):
    """The model that was learned on no longer serves; the job must learn again. It names no machine."""

    title = "Champion changed"


def unknown_machine(machine: MachineId) -> NotFound:
    """Return what is said of a machine that is not registered, or not the asker's to know of."""
    return NotFound(f"There is no machine {machine}. Enrol it with: alarmcast admin enrol {machine}")
