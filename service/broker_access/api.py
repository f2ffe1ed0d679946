"""Routes of a machine's MQTT credentials: read, rotate, revoke."""

from fastapi import APIRouter, Request, Response

from service.broker_access.models import Credential
from service.broker_access.service import CredentialService, IssuedCredential
from service.http.problems import responses
from service.http.request import MachineName, Site, actor
from wire.enums import CredentialState
from wire.identity import MachineId
from wire.rest.credentials import CredentialsView, IssuedCredentials
from wire.rest.enrolment import Reason
from wire.topics import agent_name


def router(credentials: CredentialService) -> APIRouter:
    """Return the routes of a machine's MQTT credentials."""
    routes = APIRouter(prefix="/v1/machines/{site}/{machine}/credentials", tags=["credentials"])

    @routes.get("", responses=responses(404, 422))
    def get_credentials(site: Site, machine: MachineName) -> CredentialsView:
        """Return the state of a machine's MQTT credentials, never the password."""
        identity = MachineId(site, machine)
        return view(identity, *credentials.get(identity))

    @routes.post("/rotate", responses=responses(404, 409, 410, 422, 503))
    def rotate_credentials(
        site: Site, machine: MachineName, request: Request, response: Response
    ) -> IssuedCredentials:
        """Issue a new password, shown in this answer only; a connection with the old one is closed."""
        response.headers["Cache-Control"] = "no-store"
        return issued_view(credentials.rotate(MachineId(site, machine), who=actor(request)))

    @routes.post("/revoke", responses=responses(404, 422, 503))
    def revoke_credentials(site: Site, machine: MachineName, body: Reason, request: Request) -> CredentialsView:
        """Close the machine's connection and refuse it until its credentials are rotated."""
        identity = MachineId(site, machine)
        return view(identity, *credentials.revoke(identity, who=actor(request), reason=body.reason))

    return routes


def issued_view(issued: IssuedCredential) -> IssuedCredentials:
    """Return new credentials with their password, as the API shows them once."""
    return IssuedCredentials(
        username=issued.credential.name,
        password=issued.password,
        client_id=issued.credential.name,
        generation=issued.credential.generation,
        edge_toml=issued.edge_toml,
    )


def view(machine: MachineId, credential: Credential | None, note: str | None) -> CredentialsView:
    """Return the state of credentials as the API shows it."""
    name = agent_name(machine)
    return CredentialsView(
        site=machine.site,
        machine=machine.machine,
        state=CredentialState.NONE if credential is None else credential.state,
        username=name,
        client_id=name,
        generation=credential.generation if credential else 0,
        issued_at=credential.issued_at if credential else None,
        rotated_at=credential.rotated_at if credential else None,
        revoked_at=credential.revoked_at if credential else None,
        locked_out_since=credential.locked_out_at if credential else None,
        note=note,
    )
