"""The initial schema."""

import sqlalchemy as sa
from alembic import op

from service.database.migrations.columns import ROW_ID as _ROW_ID
from service.database.migrations.columns import columns as _columns
from service.database.migrations.columns import index as _index
from service.database.migrations.columns import reference as _reference
from service.database.migrations.columns import row_id as _id

revision = "0001"
down_revision = None

_ROLES = "role IN ('viewer', 'operator', 'admin')"
_SEVERITIES = "severity IN ('low', 'medium', 'high')"
_OPEN_JOB = "state IN ('collecting', 'queued', 'running')"
_JOB_STATES = "state IN ('collecting', 'queued', 'running', 'promoted', 'rejected', 'failed', 'cancelled')"
_APPEND_ONLY = "the audit log is append-only"
# Partitioned by flag, then by month (see partitions.py), so the primary key includes both columns.
_POSTGRESQL_EVENTS = (
    (
        "CREATE TABLE events (epoch_id INTEGER NOT NULL, seq BIGINT NOT NULL, machine_id INTEGER NOT NULL,"
        " code INTEGER NOT NULL, at_us BIGINT NOT NULL, received_us BIGINT NOT NULL, flag SMALLINT NOT NULL,"
        " CONSTRAINT pk_events PRIMARY KEY (epoch_id, seq, at_us, flag)) PARTITION BY LIST (flag)"
    ),
    "CREATE TABLE events_in_time PARTITION OF events FOR VALUES IN (0) PARTITION BY RANGE (at_us)",
    "CREATE TABLE events_flagged PARTITION OF events DEFAULT",
)


def upgrade() -> None:
    _create_machines()
    _create_events()
    _create_learning()
    _create_forecasts()
    _create_notifications()
    _create_auth()
    _make_audit_log_append_only()
    _create_cluster()


def _create_machines() -> None:
    op.create_table(
        "machines",
        _id(),
        *_columns("site text, machine text, name text, time_zone text, registered_us bigint"),
        sa.Column("state", sa.Text, nullable=False, server_default="registered"),
        *_columns("reason text?, learned_us bigint?"),
        sa.UniqueConstraint("site", "machine"),
    )
    op.create_table(
        "epochs",
        _id(),
        _reference("machine_id", "machines.id"),
        *_columns("epoch uuid, last_seq bigint?"),
        sa.UniqueConstraint("machine_id", "epoch"),
    )
    op.create_table(
        "gaps",
        *_columns(
            "epoch_id integer!, first_seq bigint!, "
            "last_seq bigint, machine_id integer, first_us bigint, last_us bigint, reason text, received_us bigint"
        ),
    )
    _index("gaps", "ix_gaps_machine", "machine_id last_us")
    op.create_table(
        "agents",
        _reference("machine_id", "machines.id", primary_key=True),
        *_columns(
            "online boolean, agent text?, epoch uuid?, spooled bigint?, skew_ms bigint?, "
            "last_seen_us bigint, first_seen_us bigint?, state_us bigint?, skipped bigint?, "
            "last_skipped text?, last_skipped_us bigint?, warning text?, warning_us bigint?, "
            "duplicate text?, duplicate_us bigint?"
        ),
    )
    op.create_table(
        "unregistered_machines", *_columns("site text!, machine text!, first_us bigint, last_us bigint")
    )
    op.create_table(
        "catalogue",
        *_columns("code integer!, text text, severity text, target boolean"),
        *_columns("cause text?, consequence text?, action text?, link text?"),
        sa.Column("origin", sa.Text, nullable=False, server_default="admin"),
        *_columns("described_by integer?"),
        sa.CheckConstraint(_SEVERITIES, name="severity"),
    )
    op.create_table(
        "quarantine",
        _id(_ROW_ID),
        _reference("machine_id", "machines.id", nullable=True),
        *_columns("topic text, reason text, detail text, body bytes, sha256 text, received_us bigint"),
        sa.UniqueConstraint("topic", "reason", "sha256"),
    )
    _index("quarantine", "ix_quarantine_machine", "machine_id")
    _index("quarantine", "ix_quarantine_reason", "reason id")
    op.create_table(
        "limit_counts",
        *_columns("machine_id integer!, kind text!, amount bigint, since_us bigint, last_us bigint"),
    )


def _create_events() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for statement in _POSTGRESQL_EVENTS:
            op.execute(statement)
    else:
        op.create_table(
            "events",
            *_columns(
                "epoch_id integer!, seq bigint!, machine_id integer, code integer, at_us bigint,"
                " received_us bigint, flag smallint"
            ),
            sqlite_with_rowid=False,
        )
    _index("events", "ix_events_flagged", "machine_id at_us", where="flag <> 0")
    _index("events", "ix_events_window", "machine_id at_us code epoch_id seq flag", where="flag = 0")


def _create_learning() -> None:
    op.create_table(
        "model_versions",
        _id(),
        *_columns("created_us bigint, weights text, report text, parent_id integer?"),
        sa.Column("targets", sa.Text, nullable=False, server_default="[]"),
        sa.Column("pruned", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_table("weights", *_columns("sha256 text!"), *_columns("body bytes"))
    op.create_table(
        "promotions", _id(), _reference("version_id", "model_versions.id"), *_columns("at_us bigint, reason text?")
    )
    _index("promotions", "ix_promotions_at", "at_us")
    op.create_table(
        "jobs",
        _id(),
        _reference("machine_id", "machines.id"),
        *_columns(
            "kind text, state text, created_us bigint, started_us bigint?, finished_us bigint?, "
            "finished_plant_us bigint?, owner text?, lease_us bigint?, attempt integer, "
            "interruptions integer, progress text, message text?"
        ),
        _reference("version_id", "model_versions.id", nullable=True),
        sa.CheckConstraint(_JOB_STATES, name="state"),
    )
    _index("jobs", "uq_jobs_open", "machine_id", where=_OPEN_JOB, unique=True)
    op.create_table(
        "idempotency",
        *_columns("key text!, request text"),
        _reference("job_id", "jobs.id"),
        *_columns("created_us bigint"),
    )
    op.create_table(
        "samples",
        _id(_ROW_ID),
        _reference("machine_id", "machines.id"),
        *_columns("features integer, windows bytes"),
    )
    _index("samples", "ix_samples_machine", "machine_id")
    op.create_table(
        "tasks",
        _reference("version_id", "model_versions.id", primary_key=True),
        _reference("machine_id", "machines.id", primary_key=True),
        *_columns("position integer, offered integer, frequency text"),
        _reference("samples_id", "samples.id", _ROW_ID, nullable=True),
        *_columns("kept bytes?"),
    )
    _index("tasks", "ix_tasks_samples", "samples_id")
    op.create_table(
        "holdout_sets",
        _id(),
        _reference("machine_id", "machines.id"),
        *_columns("created_us bigint, features integer, base_rate text, windows bytes"),
    )
    _index("holdout_sets", "ix_holdout_sets_machine", "machine_id id")
    op.create_table(
        "evaluation_results",
        _reference("version_id", "model_versions.id", primary_key=True),
        _reference("holdout_set_id", "holdout_sets.id", primary_key=True),
        *_columns(
            "average_precision float?, brier_skill float?, macro_f1 float?, by_code text, probabilities bytes?"
        ),
    )
    _index("evaluation_results", "ix_evaluation_results_holdout_set", "holdout_set_id")


def _create_forecasts() -> None:
    op.create_table(
        "forecasts",
        _reference("machine_id", "machines.id", primary_key=True),
        *_columns("as_of_us bigint!"),
        _reference("version_id", "model_versions.id"),
        *_columns("status text, events_seen integer, coverage float, probabilities bytes, other_horizons bytes?"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "scoring_specs",
        _reference("version_id", "model_versions.id", ondelete="CASCADE", primary_key=True),
        *_columns("lookback_us bigint, horizon_us bigint, codes bytes, thresholds bytes"),
    )
    op.create_table(
        "scoring_progress",
        _reference("machine_id", "machines.id", ondelete="CASCADE", primary_key=True),
        *_columns("through_us bigint, late bigint"),
    )
    op.create_table(
        "outcomes",
        *_columns(
            "machine_id integer!, as_of_us bigint!, "
            "horizon_end_us bigint, events_occurred integer, unobserved boolean, label_flags bytes, "
            "base_rates bytes, scored_us bigint, revision_count integer, stale smallint"
        ),
        sa.ForeignKeyConstraint(
            ["machine_id", "as_of_us"], ["forecasts.machine_id", "forecasts.as_of_us"], ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    _index("outcomes", "ix_outcomes_horizon", "machine_id horizon_end_us")
    _index("outcomes", "ix_outcomes_stale", "machine_id stale as_of_us", where="stale = 1")


def _create_notifications() -> None:
    op.create_table(
        "shelved_alarms",
        _id(),
        _reference("machine_id", "machines.id"),
        *_columns("code integer, from_us bigint, until_us bigint, unshelved_us bigint?, actor text, reason text"),
    )
    _index("shelved_alarms", "ix_shelved_alarms_machine", "machine_id until_us")
    _index("shelved_alarms", "ix_shelved_alarms_until", "until_us")
    op.create_table(
        "maintenance_windows",
        _id(),
        *_columns("site text, machine text?, from_us bigint, until_us bigint, cancelled_us bigint?"),
        *_columns("actor text, reason text"),
    )
    _index("maintenance_windows", "ix_maintenance_windows_until", "until_us")
    op.create_table(
        "notifications",
        _id(_ROW_ID),
        _reference("machine_id", "machines.id"),
        *_columns(
            "code integer, text text, severity text, as_of_us bigint, horizon_end_us bigint, "
            "probability float, threshold float, model_version text, opened_us bigint, "
            "closed_us bigint?, ended text?, rearmed_us bigint?, webhook_id integer, held_back boolean, "
            "similar_right integer, similar_total integer"
        ),
    )
    _index("notifications", "ix_notifications_machine", "machine_id id")
    _index("notifications", "ix_notifications_rearmed", "rearmed_us")
    key = "machine_id code webhook_id"
    _index("notifications", "uq_notifications_open", key, where="closed_us IS NULL", unique=True)
    op.create_table(
        "acknowledgements",
        _id(),
        _reference("machine_id", "machines.id"),
        *_columns("code integer"),
        _reference("notification_id", "notifications.id", _ROW_ID, ondelete="SET NULL", nullable=True),
        *_columns("at_us bigint, ended_us bigint?, actor text, note text?"),
    )
    _index("acknowledgements", "ix_acknowledgements_ended", "ended_us")
    _index("acknowledgements", "ix_acknowledgements_machine", "machine_id id")
    _index("acknowledgements", "ix_acknowledgements_notification", "notification_id")
    op.create_table(
        "answers",
        _id(_ROW_ID),
        _reference("machine_id", "machines.id"),
        *_columns("code integer"),
        _reference("notification_id", "notifications.id", _ROW_ID, ondelete="SET NULL", nullable=True),
        *_columns("answer text, note text?, actor text, at_us bigint"),
        sa.UniqueConstraint("notification_id"),
        sa.CheckConstraint("answer IN ('handled', 'useful', 'wrong')", name="answer"),
    )
    _index("answers", "ix_answers_code", "code id")
    _index("answers", "ix_answers_machine", "machine_id at_us")
    op.create_table(
        "webhooks",
        _id(),
        *_columns(
            "url text, secret text, severity text, site text?, machine text?, enabled boolean, "
            "error text?, created_us bigint, policy text?"
        ),
        sa.CheckConstraint(_SEVERITIES, name="severity"),
    )
    op.create_table("notification_policies", *_columns("site text!, policy text"))
    op.create_table(
        "deliveries",
        _id(_ROW_ID),
        _reference("notification_id", "notifications.id", _ROW_ID, ondelete="CASCADE"),
        _reference("webhook_id", "webhooks.id", ondelete="CASCADE"),
        *_columns(
            "key uuid, created_us bigint, attempts integer, next_attempt_us bigint?, status integer?, "
            "response text?, delivered_us bigint?, abandoned_us bigint?"
        ),
        sa.UniqueConstraint("notification_id", "webhook_id"),
    )
    _index("deliveries", "ix_deliveries_due", "next_attempt_us")
    _index("deliveries", "ix_deliveries_webhook", "webhook_id")


def _create_auth() -> None:
    op.create_table(
        "audit_log",
        _id(_ROW_ID),
        *_columns("at_us bigint, actor text, action text, subject text, reason text?, client_ip text?"),
    )
    op.create_table(
        "users",
        _id(),
        *_columns(
            "name text, role text, sites text?, password text, must_change boolean, created_us bigint, "
            "last_login_us bigint?"
        ),
        sa.CheckConstraint(_ROLES, name="role"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "sessions",
        _id(),
        *_columns("prefix text, digest text"),
        _reference("user_id", "users.id", ondelete="CASCADE"),
        *_columns("created_us bigint, last_seen_us bigint, expires_us bigint, client_ip text?"),
        sa.UniqueConstraint("prefix"),
    )
    _index("sessions", "ix_sessions_expires", "expires_us")
    _index("sessions", "ix_sessions_user", "user_id")
    op.create_table(
        "api_keys",
        _id(),
        *_columns(
            "name text, prefix text, digest text, role text, sites text?, created_us bigint, "
            "created_by text, expires_us bigint?, last_used_us bigint?"
        ),
        sa.CheckConstraint(_ROLES, name="role"),
        sa.UniqueConstraint("name"),
        sa.UniqueConstraint("prefix"),
    )
    op.create_table(
        "credentials",
        _reference("machine_id", "machines.id", primary_key=True),
        *_columns(
            "username text, client_id text, generation integer, issued_us bigint, rotated_us bigint?, "
            "revoked_us bigint?, locked_out_us bigint?, unconfirmed_us bigint?"
        ),
        sa.UniqueConstraint("username"),
    )


def _make_audit_log_append_only() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_log_rejects_{action.lower()} BEFORE {action} ON audit_log "
                f"BEGIN SELECT RAISE(ABORT, '{_APPEND_ONLY}'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION reject_audit_log_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_APPEND_ONLY}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log "
        "FOR EACH STATEMENT EXECUTE FUNCTION reject_audit_log_change()"
    )


def _create_cluster() -> None:
    op.create_table("installation", *_columns("id integer!, identity text"))
    op.create_table("leases", *_columns("name text!, owner text, expires_us bigint"))
    process = "name text!, roles text, since_us bigint, last_seen_us bigint, report text"
    op.create_table("processes", *_columns(process))
