"""What can go wrong with a call, drawn once; a problem (RFC 9457) becomes the error of its status.

AlarmcastError
├── Unreachable      no answer, or the answer broke off
├── Unreadable       it was answered, but not in the shapes that this client knows
└── ApiError         the service said no: status, title, detail and errors say what and why
    ├── NotSignedIn  the key or session is not known           401
    ├── Forbidden    known, but not allowed to do this         403
    ├── NotFound     no such machine, version, job or page     404
    ├── Conflict     contradicts what is known already         409
    ├── Gone         the machine has been retired              410
    ├── TooLarge     more than may be sent at once             413
    ├── Rejected     wrong, and will stay wrong                422
    └── Unavailable  try again, after retry_after seconds      503
        └── TooMany  asked more often than is allowed          429
"""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from pydantic import ValidationError

from wire.rest.problems import FieldError, Problem, in_words


class AlarmcastError(Exception):
    """The message is a sentence for people."""


class Unreachable(AlarmcastError):
    """No answer, or the answer broke off; its cause is what httpx says."""


class InvalidResponse(AlarmcastError):
    """The answer has another shape than this client knows: service and client are too far apart."""


class ApiError(AlarmcastError):
    """The service said no; ``errors`` names each part of the request that is wrong."""

    def __init__(self, problem: Problem, *, retry_after: float | None = None) -> None:
        super().__init__(problem.detail)
        self.status = problem.status
        self.title = problem.title
        self.detail = problem.detail
        self.errors = problem.errors
        self.retry_after = retry_after


class NotSignedIn(ApiError):
    """The key or the session is not known, or not any more."""


class Forbidden(ApiError):
    """The key or the person may not do this."""


class NotFound(ApiError):
    """What was asked for does not exist."""


class Conflict(ApiError):
    """What was asked for contradicts what is known."""


class Gone(ApiError):
    """What was asked for has been let go."""


class TooLarge(ApiError):
    """More was sent than is taken at once."""


class Rejected(ApiError):
    """The request is wrong and will stay wrong."""


class Unavailable(ApiError):
    """It may work later; ``retry_after`` seconds is the service's guess at when, if it has one."""


class TooMany(Unavailable):
    """Asked more often than is allowed; ``retry_after`` seconds must pass."""


_BY_STATUS = {
    401: NotSignedIn,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    422: Rejected,
    429: TooMany,
    503: Unavailable,
}


def error_from_response(response: httpx.Response) -> ApiError:
    """Return the error that an answer describes, also where something in between answered in its own words."""
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        status, path = response.status_code, response.request.url.path
        detail = f"The service answered {status}."
        problem = Problem(title=response.reason_phrase, status=status, detail=detail, instance=path)
    after = response.headers.get("retry-after", "")
    kind = _BY_STATUS.get(response.status_code, ApiError)
    return kind(problem, retry_after=float(after) if after.isdecimal() else None)


def validation_error(error: ValueError, path: str) -> Rejected:
    """Return what the service would have answered to a request that cannot even be written."""
    errors = []
    if isinstance(error, ValidationError):
        errors = [
            FieldError(pointer="/".join(("body", *map(str, one["loc"]))), detail=in_words(one))
            for one in error.errors()
        ]
    detail = f"{errors[0].pointer}: {errors[0].detail}." if errors else str(error)
    return Rejected(Problem(title="Input rejected", status=422, detail=detail, instance=path, errors=errors))


@contextmanager
def map_connection_errors(address: httpx.URL) -> Iterator[None]:
    """Let what breaks on the way to an address and back leave as :class:`Unreachable`."""
    try:
        yield
    except httpx.HTTPError as failure:
        raise Unreachable(f"{address} does not answer: {failure!r}.") from failure
