"""Machines: who there is, how they are, and what each of them has raised and lost."""

from datetime import datetime

from alarmcast.endpoint import Resource, TransportT, operation, pages
from alarmcast.requests import MachineName, RequestSpec, path_params
from wire.events import TransitionKind
from wire.rest.gaps import GapPage
from wire.rest.machines import AlarmsPage, Fleet, MachineView
from wire.rest.silent import SilentFleet


class Machines(Resource[TransportT]):
    """``client.machines``; a machine is named ``site/machine``."""

    @operation("GET /v1/machines", Fleet)
    def list(self, *, retired: bool = False) -> RequestSpec:
        """Return all enrolled machines, with retired ones if wanted, and unregistered machines that publish."""
        return RequestSpec(params={"retired": retired})

    @operation("GET /v1/machines/{site}/{machine}", MachineView)
    def get(self, machine: MachineName) -> RequestSpec:
        """Return one machine and how its agent is."""
        return RequestSpec(at=path_params(machine))

    @operation("GET /v1/machines/{site}/{machine}/alarms", AlarmsPage)
    def alarms_page(
        self,
        machine: MachineName,
        *,
        limit: int = 100,
        cursor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        code: int | None = None,
        flagged: bool = False,
        kind: TransitionKind | None = None,
    ) -> RequestSpec:
        """Return what the machine has raised in ``[since, until)``, newest first, one page of it.

        With a kind these are cleared or acknowledged alarms, or stops, instead.
        """
        narrowed = {"since": since, "until": until, "code": code, "flagged": flagged, "kind": kind}
        return RequestSpec(at=path_params(machine), params={"limit": limit, "cursor": cursor, **narrowed})

    alarms = pages(alarms_page, lambda page: page.alarms)

    @operation("GET /v1/machines/{site}/{machine}/gaps", GapPage)
    def gaps(
        self,
        machine: MachineName,
        *,
        limit: int = 100,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> RequestSpec:
        """Return which of the machine's events were dropped because its spool was full."""
        return RequestSpec(at=path_params(machine), params={"limit": limit, "since": since, "until": until})

    @operation("GET /v1/silent", SilentFleet)
    def silent(self) -> RequestSpec:
        """Return the machines that should have spoken by their own rhythm and have not."""
        return RequestSpec()
