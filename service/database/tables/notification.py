"""Notifications, suppression, webhooks and their deliveries."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from service.database.tables.base import RowId, metadata

# Suppression only affects notifications and alarm metrics; forecasts do not read it. Plant time.
shelved_alarms = Table(
    "shelved_alarms",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("code", Integer, nullable=False),
    Column("from_us", BigInteger, nullable=False),
    Column("until_us", BigInteger, nullable=False),
    Column("unshelved_us", BigInteger, nullable=True),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("ix_shelved_alarms_machine", "machine_id", "until_us"),
    Index("ix_shelved_alarms_until", "until_us"),
)

maintenance_windows = Table(
    "maintenance_windows",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("site", Text, nullable=False),
    Column("machine", Text, nullable=True),  # null means the whole site
    Column("from_us", BigInteger, nullable=False),
    Column("until_us", BigInteger, nullable=False),
    Column("cancelled_us", BigInteger, nullable=True),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("ix_maintenance_windows_until", "until_us"),
)

# ``rearmed_us``: from then on, after the quiet period, a new notification of the same machine and code may open.
notifications = Table(
    "notifications",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("code", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("as_of_us", BigInteger, nullable=False),
    Column("horizon_end_us", BigInteger, nullable=False),
    Column("probability", Float, nullable=False),
    Column("threshold", Float, nullable=False),
    Column("model_version", Text, nullable=False),
    Column("opened_us", BigInteger, nullable=False),
    Column("closed_us", BigInteger, nullable=True),
    Column("ended", Text, nullable=True),
    Column("rearmed_us", BigInteger, nullable=True),
    Column("webhook_id", Integer, nullable=False),  # by whose own policy; 0: that of the site
    Column("held_back", Boolean, nullable=False),  # over the limit of its shift: not sent
    Column("similar_right", Integer, nullable=False),  # earlier ones of this alarm in 30 days
    Column("similar_total", Integer, nullable=False),
    # At most one open notification per alarm and policy, across processes.
    Index(
        "uq_notifications_open",
        "machine_id",
        "code",
        "webhook_id",
        unique=True,
        sqlite_where=text("closed_us IS NULL"),
    ),
    Index("ix_notifications_machine", "machine_id", "id"),
    Index("ix_notifications_rearmed", "rearmed_us"),
)

acknowledgements = Table(
    "acknowledgements",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("code", Integer, nullable=False),
    Column("notification_id", ForeignKey("notifications.id", ondelete="SET NULL"), nullable=True),
    Column("at_us", BigInteger, nullable=False),
    Column("ended_us", BigInteger, nullable=True),  # when the probability fell below the threshold
    Column("actor", Text, nullable=False),
    Column("note", Text, nullable=True),
    Index("ix_acknowledgements_machine", "machine_id", "id"),
    Index("ix_acknowledgements_notification", "notification_id"),
    Index("ix_acknowledgements_ended", "ended_us"),
)

# Answers are shown, counted and exported; learning and forecasts do not read them. Plant time.
answers = Table(
    "answers",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("code", Integer, nullable=False),
    Column("notification_id", ForeignKey("notifications.id", ondelete="SET NULL"), nullable=True),
    Column("answer", Text, nullable=False),
    Column("note", Text, nullable=True),
    Column("actor", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    UniqueConstraint("notification_id"),
    CheckConstraint("answer IN ('handled', 'useful', 'wrong')", name="answer"),
    Index("ix_answers_code", "code", "id"),
    Index("ix_answers_machine", "machine_id", "at_us"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("severity", Text, nullable=False),  # minimum
    Column("site", Text, nullable=True),
    Column("machine", Text, nullable=True),
    Column("enabled", Boolean, nullable=False),
    Column("error", Text, nullable=True),
    Column("created_us", BigInteger, nullable=False),
    Column("policy", Text, nullable=True),  # JSON; null means the policy of the machine's site
    CheckConstraint("severity IN ('low', 'medium', 'high')", name="severity"),
)

notification_policies = Table(
    "notification_policies",
    metadata,
    Column("site", Text, primary_key=True),
    Column("policy", Text, nullable=False),  # JSON
)

# Outbox of webhooks, written in the notification's transaction; wall time. A sender claims a delivery by moving
# ``next_attempt_us`` on, so that two senders never send the same one at once.
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("notification_id", ForeignKey("notifications.id", ondelete="CASCADE"), nullable=False),
    Column("webhook_id", ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    Column("key", Uuid, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt_us", BigInteger, nullable=True),  # null when finished
    Column("status", Integer, nullable=True),
    Column("response", Text, nullable=True),
    Column("delivered_us", BigInteger, nullable=True),
    Column("abandoned_us", BigInteger, nullable=True),
    UniqueConstraint("notification_id", "webhook_id"),
    Index("ix_deliveries_webhook", "webhook_id"),
    Index("ix_deliveries_due", "next_attempt_us"),
)
