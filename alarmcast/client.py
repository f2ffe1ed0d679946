"""The two clients: the same nouns, once to be called and once to be awaited."""

from collections.abc import Mapping
from types import TracebackType
from typing import Generic, Self, TypedDict

import httpx

from alarmcast.endpoint import Resource, TransportT
from alarmcast.nouns.acknowledgements import Acknowledgements
from alarmcast.nouns.audit import Audit
from alarmcast.nouns.catalogue import Catalogue
from alarmcast.nouns.credentials import Credentials
from alarmcast.nouns.enrolment import Enrolment
from alarmcast.nouns.exports import Exports
from alarmcast.nouns.figures import Figures
from alarmcast.nouns.fleet import Fleet
from alarmcast.nouns.forecasts import Forecasts
from alarmcast.nouns.health import Health
from alarmcast.nouns.jobs import Jobs
from alarmcast.nouns.keys import Keys
from alarmcast.nouns.machines import Machines
from alarmcast.nouns.maintenance import Maintenance
from alarmcast.nouns.memory import Memory
from alarmcast.nouns.models import Models
from alarmcast.nouns.notices import Notices
from alarmcast.nouns.quarantine import Quarantine
from alarmcast.nouns.scores import Scores
from alarmcast.nouns.session import Session
from alarmcast.nouns.shelves import Shelves
from alarmcast.nouns.stream import Stream
from alarmcast.nouns.timelines import Timelines
from alarmcast.nouns.users import Users
from alarmcast.nouns.webhooks import Webhooks
from alarmcast.patience import RetryPolicy
from alarmcast.senders import AsyncTransport, Transport

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
        self.figures = Figures(sender)
        self.timelines = Timelines(sender)
        self.exports = Exports(sender)
        self.jobs = Jobs(sender)
        self.models = Models(sender)
        self.memory = Memory(sender)
        self.catalogue = Catalogue(sender)
        self.quarantine = Quarantine(sender)
        self.notices = Notices(sender)
        self.acknowledgements = Acknowledgements(sender)
        self.shelves = Shelves(sender)
        self.maintenance = Maintenance(sender)
        self.webhooks = Webhooks(sender)
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
