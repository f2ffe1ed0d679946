"""The database schema, one file per feature. Times are microseconds since 1970 in UTC, named ``…_us``."""

from service.database.tables.auth import api_keys, audit_log, credentials, sessions, users
from service.database.tables.base import metadata
from service.database.tables.cluster import installation, leases, processes
from service.database.tables.forecast import forecasts, outcomes, scoring_progress, scoring_specs
from service.database.tables.learning import (
    evaluation_results,
    holdout_sets,
    idempotency,
    jobs,
    model_versions,
    promotions,
    samples,
    tasks,
    weights,
)
from service.database.tables.machine import (
    agents,
    catalogue,
    epochs,
    events,
    gaps,
    limit_counts,
    machines,
    quarantine,
    unregistered_machines,
)
from service.database.tables.notification import (
    acknowledgements,
    deliveries,
    maintenance_windows,
    notification_policies,
    notifications,
    shelved_alarms,
    webhooks,
)

__all__ = [
    "acknowledgements",
    "agents",
    "api_keys",
    "audit_log",
    "catalogue",
    "credentials",
    "deliveries",
    "epochs",
    "evaluation_results",
    "events",
    "forecasts",
    "gaps",
    "holdout_sets",
    "idempotency",
    "installation",
    "jobs",
    "leases",
    "limit_counts",
    "machines",
    "maintenance_windows",
    "metadata",
    "model_versions",
    "notification_policies",
    "notifications",
    "outcomes",
    "processes",
    "promotions",
    "quarantine",
    "samples",
    "scoring_progress",
    "scoring_specs",
    "sessions",
    "shelved_alarms",
    "tasks",
    "unregistered_machines",
    "users",
    "webhooks",
    "weights",
]
