"""SQL of notification policies, and of the notifications that a policy counts."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, insert, select, update

from service.auth.audit_store import record
from service.database.tables import machines, notification_policies, notifications, webhooks
from service.machines.site_scoped_store import SiteScopedStore
from service.notifications.policy import DEFAULT_POLICY
from service.notifications.webhook import Webhook
from wire.rest.policies import NotificationPolicy
from wire.timestamps import to_us


@dataclass(frozen=True)
class PolicyStore(SiteScopedStore):
    """The policy of each site and of webhooks with their own."""

    def all(self) -> dict[str, NotificationPolicy]:
        """Return the policies that were set, by site."""
        query = select(notification_policies).where(*self.in_sites(notification_policies.c.site))
        with self.database.read() as connection:
            return {
                row.site: NotificationPolicy.model_validate_json(row.policy) for row in connection.execute(query)
            }

    def save(self, site: str, policy: NotificationPolicy, *, at: datetime, who: str, reason: str) -> None:
        """Set the policy of a site; the default policy is not stored."""
        self.require(site)
        with self.database.write() as connection:
            connection.execute(delete(notification_policies).where(notification_policies.c.site == site))
            if policy != DEFAULT_POLICY:
                row = {"site": site, "policy": policy.model_dump_json()}
                connection.execute(insert(notification_policies).values(**row))
            record(connection, at=at, who=who, action="set policy", subject=site, reason=reason)

    def save_own(
        self, webhook: Webhook, policy: NotificationPolicy | None, *, at: datetime, who: str, reason: str
    ) -> None:
        """Set the policy of a webhook, or with None remove it."""
        self.require(webhook.site)
        stored = policy and policy.model_dump_json()
        with self.database.write() as connection:
            connection.execute(update(webhooks).where(webhooks.c.id == webhook.id).values(policy=stored))
            subject = f"webhook {webhook.id}"
            record(connection, at=at, who=who, action="set policy", subject=subject, reason=reason)

    def sent_since(self, machine_id: int, webhook: int, since: datetime) -> int:
        """Return how many notifications of a machine were opened since and not held back."""
        query = select(func.count()).where(
            notifications.c.machine_id == machine_id,
            notifications.c.webhook_id == webhook,
            notifications.c.opened_us >= to_us(since),
            notifications.c.held_back.is_(False),
        )
        with self.database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def counts(self, since: datetime) -> dict[tuple[str, bool], int]:
        """Return the number of notifications since, by site and whether they were held back."""
        columns = (machines.c.site, notifications.c.held_back)
        query = (
            select(*columns, func.count())
            .join_from(notifications, machines)
            .where(notifications.c.webhook_id == 0, notifications.c.opened_us >= to_us(since))
            .where(*self.in_sites(machines.c.site))
            .group_by(*columns)
        )
        with self.database.read() as connection:
            return {(site, bool(held)): count for site, held, count in connection.execute(query)}

    def horizons(
        self, machine_id: int, code: int, webhook: int, since: datetime, until: datetime
    ) -> list[tuple[int, int]]:
        """Return ``[as_of, horizon_end)`` of similar notifications whose horizon ended by ``until``."""
        columns = (notifications.c.as_of_us, notifications.c.horizon_end_us)
        query = select(*columns).where(
            notifications.c.machine_id == machine_id,
            notifications.c.code == code,
            notifications.c.webhook_id == webhook,
            notifications.c.opened_us >= to_us(since),
            notifications.c.horizon_end_us <= to_us(until),
        )
        with self.database.read() as connection:
            return [(start, end) for start, end in connection.execute(query)]
