"""Write a request to the audit log before it is carried out."""

from typing import Protocol

from service.auth.audit_store import AuditStore


class _HasAudit(Protocol):
    @property
    def audit(self) -> AuditStore: ...


def audit(services: _HasAudit, action: str, subject: str, reason: str | None = None) -> None:
    """Write the current request to the audit log."""
    services.audit.write_request(action, subject, reason)
