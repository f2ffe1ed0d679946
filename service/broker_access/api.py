"""What lets a machine in at the broker: how it is, a new one, none any more."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from service.broker_access.models import Credential
from service.broker_access.service import IssuedCredential
from service.http.problems import responses
from service.http.request import MachineName, Site, actor
from wire.enums import CredentialState
from wire.identity import MachineId
from wire.rest.credentials import CredentialsView, IssuedCredentials
from wire.rest.enrolment import Reason
from wire.topics import agent_name

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of credentials."""
    routes = APIRouter(prefix="/v1/machines/{site}/{machine}/credentials", tags=["credentials"])

    @routes.get("", responses=responses(404, 422))
    def get_credentials(site: Site, machine: MachineName) -> CredentialsView:
        """Whether the broker lets the machine in, and since when; never with what."""
        identity = MachineId(site, machine)
        return view(identity, *parts.credentials.get(identity))

    @routes.post("/rotate", responses=responses(404, 409, 410, 422, 503))
    def rotate_credentials(
        site: Site, machine: MachineName, request: Request, response: Response
    ) -> IssuedCredentials:
        """A new password, shown in this answer only; an agent that is there with the old one is thrown out."""
        response.headers["Cache-Control"] = "no-store"
        return shown(parts.credentials.rotate(MachineId(site, machine), who=actor(request)))

    @routes.post("/revoke", responses=responses(404, 422, 503))
    def revoke_credentials(site: Site, machine: MachineName, why: Reason, request: Request) -> CredentialsView:
        """Throw the machine out and let it in no more, until its credentials are rotated."""
        identity = MachineId(site, machine)
        return view(identity, *parts.credentials.revoke(identity, who=actor(request), reason=why.reason))

    return routes


def shown(issued: IssuedCredential) -> IssuedCredentials:
    """Return fresh credentials as the API shows them, once."""
    return IssuedCredentials(
        username=issued.credential.name,
        password=issued.password,
        client_id=issued.credential.name,
        generation=issued.credential.generation,
        edge_toml=issued.edge_toml,
    )


def view(machine: MachineId, known: Credential | None, note: str | None) -> CredentialsView:
    """Return credentials as the API shows them ever after."""
    name = agent_name(machine)
    return CredentialsView(
        site=machine.site,
        machine=machine.machine,
        state=CredentialState.NONE if known is None else known.state,
        username=name,
        client_id=name,
        generation=known.generation if known else 0,
        issued_at=known.issued_at if known else None,
        rotated_at=known.rotated_at if known else None,
        revoked_at=known.revoked_at if known else None,
        locked_out_since=known.locked_out_at if known else None,
        note=note,
    )
