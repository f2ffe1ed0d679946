"""Read and set the notification policies of sites."""

from dataclasses import dataclass

from service.errors import NotFound
from service.machines.catalogue_store import CatalogueStore
from service.machines.models import MachineReader
from service.messaging.bus import ChangeBus, SuppressionChanged
from service.notifications.policy import DEFAULT_POLICY, check_policy, policy_text
from service.notifications.policy_store import PolicyStore
from service.notifications.service import SIMILAR_SPAN
from wire.clock import PlantClock
from wire.rest.policies import NotificationPolicy, SitePolicyView


@dataclass(frozen=True)
class PolicyService:
    """Policies of the sites that have machines."""

    machines: MachineReader
    policies: PolicyStore
    catalogue: CatalogueStore
    clock: PlantClock
    bus: ChangeBus

    def all(self) -> list[SitePolicyView]:
        """Return the policy of every site with its counts of the last 30 days."""
        chosen, counts = self.policies.all(), self.policies.counts(self.clock.now() - SIMILAR_SPAN)
        return [
            SitePolicyView(
                site=site,
                policy=(policy := chosen.get(site, DEFAULT_POLICY)),
                text=policy_text(policy),
                is_default=policy == DEFAULT_POLICY,
                sent=counts.get((site, False), 0),
                held_back=counts.get((site, True), 0),
            )
            for site in sorted({machine.id.site for machine in self.machines.all()})
        ]

    def save(self, site: str, policy: NotificationPolicy, *, who: str, reason: str) -> SitePolicyView:
        """Set the policy of a site, or raise :class:`InputRejected` if it can never notify."""
        if not any(view.site == site for view in self.all()):
            raise NotFound(f"Site {site} has no machines.")
        check_policy(policy, self.catalogue.entries().values())
        self.policies.save(site, policy, at=self.clock.now(), who=who, reason=reason)
        self.bus.publish(SuppressionChanged(site, None))  # evaluate its forecasts again
        return next(view for view in self.all() if view.site == site)
