"""Routes of notification policies."""

from fastapi import APIRouter, Request

from service.http.problems import responses
from service.http.request import Number, Site, actor
from service.notifications.api import webhook_view
from service.notifications.policy_service import PolicyService
from service.notifications.webhook_service import WebhookService
from wire.rest.policies import PolicyChange, PolicyList, SitePolicyView, WebhookPolicyChange
from wire.rest.webhooks import WebhookView


def router(policies: PolicyService, webhooks: WebhookService) -> APIRouter:
    """Return the routes of policies of sites and webhooks."""
    routes = APIRouter(prefix="/v1", tags=["notifications"])

    @routes.get("/notification-policies")
    def list_policies() -> PolicyList:
        """List the notification policy of every site, with how many notifications it sent and held back."""
        return PolicyList(policies=policies.all())

    @routes.put("/notification-policies/{site}", responses=responses(404, 422))
    def set_policy(site: Site, body: PolicyChange, request: Request) -> SitePolicyView:
        """Set the notification policy of a site; one that can never notify is refused."""
        return policies.save(site, body.policy, who=actor(request), reason=body.reason)

    @routes.put("/webhooks/{number}/policy", responses=responses(404, 422))
    def set_webhook_policy(number: Number, body: WebhookPolicyChange, request: Request) -> WebhookView:
        """Give a webhook its own notification policy, or with null that of each machine's site again."""
        return webhook_view(webhooks.set_policy(number, body.policy, who=actor(request), reason=body.reason))

    return routes
