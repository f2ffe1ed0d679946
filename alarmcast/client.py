"""The two clients: the same nouns, once to be called and once to be awaited."""

from collections.abc import Mapping
from types import TracebackType
from typing import Generic, Self, TypedDict

import httpx

from alarmcast.endpoint import Resource, TransportT
from alarmcast.resources.acknowledgements import Acknowledgements
from alarmcast.resources.alarm_metrics import AlarmMetrics
from alarmcast.resources.answers import Answers
from alarmcast.resources.audit import Audit
from alarmcast.resources.catalogue import Catalogue
from alarmcast.resources.credentials import Credentials
from alarmcast.resources.enrolment import Enrolment
from alarmcast.resources.exports import Exports
from alarmcast.resources.fleet import Fleet
from alarmcast.resources.forecasts import Forecasts
from alarmcast.resources.health import Health
from alarmcast.resources.jobs import Jobs
from alarmcast.resources.keys import Keys
from alarmcast.resources.machines import Machines
from alarmcast.resources.maintenance import Maintenance
from alarmcast.resources.memory import Memory
from alarmcast.resources.models import Models
from alarmcast.resources.notifications import Notifications
from alarmcast.resources.policies import Policies
from alarmcast.resources.quarantine import Quarantine
from alarmcast.resources.scores import Scores
from alarmcast.resources.session import Session
from alarmcast.resources.shelves import Shelves
from alarmcast.resources.stream import Stream
from alarmcast.resources.timelines import Timelines
from alarmcast.resources.users import Users
from alarmcast.resources.webhooks import Webhooks
from alarmcast.retry import RetryPolicy
from alarmcast.transport import AsyncTransport, Transport

_HERE = "http://127.0.0.1:8080"
_ONCE = RetryPolicy()


class Api(Resource[TransportT], Generic[TransportT]):
    """Everything there is to ask and to order, by noun."""

    def __init__(self, sender: TransportT) -> None:
        super().__init__(sender)
        self.fleet = Fleet(sender)
        self.machines = Machines(sender)
        self.enrolment = Enrolment(sender)
        self.credentials = Credentials(sender)
        self.forecasts = Forecasts(sender)
        self.stream = Stream(sender)
        self.scores = Scores(sender)
        self.alarm_metrics = AlarmMetrics(sender)
        self.timelines = Timelines(sender)
        self.exports = Exports(sender)
        self.jobs = Jobs(sender)
        self.models = Models(sender)
        self.memory = Memory(sender)
        self.catalogue = Catalogue(sender)
        self.quarantine = Quarantine(sender)
        self.notifications = Notifications(sender)
        self.answers = Answers(sender)
        self.acknowledgements = Acknowledgements(sender)
        self.shelves = Shelves(sender)
        self.maintenance = Maintenance(sender)
        self.webhooks = Webhooks(sender)
        self.policies = Policies(sender)
        self.session = Session(sender)
        self.users = Users(sender)
        self.keys = Keys(sender)
        self.audit = Audit(sender)
        self.health = Health(sender)


class Client(Api[Transport]):
    """Calls the API and waits for its answer; may be shared by threads.

    ``key`` is sent as a bearer token. ``transport`` stands in for the network, as :class:`InProcess` does; an
    ``http`` client of your own is used as it is, and closing it stays yours.
    """

    def __init__(
        self,
        address: str = _HERE,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | httpx.Timeout = 30.0,
        patience: RetryPolicy = _ONCE,
        transport: httpx.BaseTransport | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        self._own = http is None
        self.http = http or httpx.Client(transport=transport, **_options(address, key, headers, timeout))
        super().__init__(Transport(self.http, patience))

    def close(self) -> None:
        """Close the connections, unless they are those of a client that was given."""
        if self._own:
            self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(Api[AsyncTransport]):
    """The same for programs that await; see :class:`Client` for what it is given."""

    def __init__(
        self,
        address: str = _HERE,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | httpx.Timeout = 30.0,
        patience: RetryPolicy = _ONCE,
        transport: httpx.AsyncBaseTransport | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._own = http is None
        self.http = http or httpx.AsyncClient(transport=transport, **_options(address, key, headers, timeout))
        super().__init__(AsyncTransport(self.http, patience))

    async def aclose(self) -> None:
        """Close the connections, unless they are those of a client that was given."""
        if self._own:
            await self.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Options(TypedDict):
    base_url: str
    headers: dict[str, str]
    timeout: float | httpx.Timeout


def _options(
    address: str, key: str | None, headers: Mapping[str, str] | None, timeout: float | httpx.Timeout
) -> _Options:
    """Return what both kinds of httpx client are made with."""
    bearer = {} if key is None else {"Authorization": f"Bearer {key}"}
    return _Options(base_url=address, headers={**(headers or {}), **bearer}, timeout=timeout)
