"""Credentials: what lets a machine in at the broker."""

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import MachineName, RequestSpec, path_params
from wire.rest.credentials import CredentialsView, IssuedCredentials
from wire.rest.enrolment import Reason


class Credentials(Resource[TransportT]):
    """``client.credentials``; a machine is named ``site/machine``."""

    @operation("GET /v1/machines/{site}/{machine}/credentials", CredentialsView)
    def get(self, machine: MachineName) -> RequestSpec:
        """Return whether the broker lets a machine in; never with what."""
        return RequestSpec(at=path_params(machine))

    @operation("POST /v1/machines/{site}/{machine}/credentials/rotate", IssuedCredentials)
    def rotate(self, machine: MachineName) -> RequestSpec:
        """Issue a new password, shown in this answer only, and disconnect clients with the old one."""
        return RequestSpec(at=path_params(machine))

    @operation("POST /v1/machines/{site}/{machine}/credentials/revoke", CredentialsView)
    def revoke(self, machine: MachineName, *, reason: str) -> RequestSpec:
        """Throw a machine out and let it in no more, until its credentials are rotated."""
        return RequestSpec(at=path_params(machine), body=Reason(reason=reason))
