"""Notification policies of sites."""

from typing import Any

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.rest.policies import NotificationPolicy, PolicyChange, PolicyList, SitePolicyView


class Policies(Resource[TransportT]):
    """``client.policies``."""

    @operation("GET /v1/notification-policies", PolicyList)
    def list(self) -> RequestSpec:
        """Return the notification policy of every site."""
        return RequestSpec()

    @operation("PUT /v1/notification-policies/{site}", SitePolicyView)
    def set(self, site: str, policy: NotificationPolicy | dict[str, Any], *, reason: str) -> RequestSpec:
        """Set the notification policy of a site."""
        body = PolicyChange.model_validate({"policy": policy, "reason": reason})
        return RequestSpec(at={"site": site}, body=body)
