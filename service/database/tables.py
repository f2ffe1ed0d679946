"""The schema. Times are whole microseconds since 1970 in UTC, named ``…_us``."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    false,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# An index of some rows only is said here in SQLite's words (``sqlite_where``). PostgreSQL has the same one by its
# migration; to say so here would load its dialect into every process, which takes longer than all of this file.

# SQLite numbers rows by itself only in a column declared INTEGER.
RowId = BigInteger().with_variant(Integer, "sqlite")

machines = Table(
    "machines",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("site", Text, nullable=False),
    Column("machine", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("time_zone", Text, nullable=False),
    Column("registered_us", BigInteger, nullable=False),
    Column("state", Text, nullable=False, server_default="registered"),
    Column("reason", Text, nullable=True),  # of a failure, in a sentence
    Column("learned_us", BigInteger, nullable=True),  # when it was last learned, in plant time
    UniqueConstraint("site", "machine"),
)

# An epoch is one spool or one history file; events carry its short number instead of its UUID.
epochs = Table(
    "epochs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("epoch", Uuid, nullable=False),
    # The highest number ever stored of it, where several processes may write; none if nobody has looked yet.
    Column("last_seq", BigInteger, nullable=True),
    UniqueConstraint("machine_id", "epoch"),
)

# An event is known by its epoch and number. PostgreSQL keeps a table for each month (see partitions.py), whose key
# must have the moment and the flag in it, too.
events = Table(
    "events",
    metadata,
    Column("epoch_id", Integer, nullable=False, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False, primary_key=True, autoincrement=False),
    Column("machine_id", Integer, nullable=False),
    Column("code", Integer, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("received_us", BigInteger, nullable=False),
    Column("flag", SmallInteger, nullable=False),
    # Every window is read from this index alone; flagged events are not in it. Events of one moment stand by
    # code, so that their order depends on nothing but themselves. (SQLite reads an index alone only if every
    # column the query names is in it, the one of the WHERE below included.)
    Index(
        "ix_events_window",
        "machine_id",
        "at_us",
        "code",
        "epoch_id",
        "seq",
        "flag",
        sqlite_where=text("flag = 0"),
    ),
    Index(
        "ix_events_flagged",
        "machine_id",
        "at_us",
        sqlite_where=text("flag <> 0"),
    ),
    sqlite_with_rowid=False,
)

gaps = Table(
    "gaps",
    metadata,
    Column("epoch_id", Integer, nullable=False, primary_key=True, autoincrement=False),
    Column("first_seq", BigInteger, nullable=False, primary_key=True, autoincrement=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("machine_id", Integer, nullable=False),
    Column("first_us", BigInteger, nullable=False),
    Column("last_us", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("received_us", BigInteger, nullable=False),
    Index("ix_gaps_machine", "machine_id", "last_us"),
)

agents = Table(
    "agents",
    metadata,
    Column("machine_id", ForeignKey("machines.id"), primary_key=True, autoincrement=False),
    Column("online", Boolean, nullable=False),
    Column("agent", Text, nullable=True),
    Column("epoch", Uuid, nullable=True),
    Column("spooled", BigInteger, nullable=True),
    Column("skew_ms", BigInteger, nullable=True),
    Column("heard_us", BigInteger, nullable=False),
    Column("since_us", BigInteger, nullable=True),  # the first sign of life
    Column("state_us", BigInteger, nullable=True),  # as of when the state was true
    Column("skipped", BigInteger, nullable=True),
    Column("last_skipped", Text, nullable=True),
    Column("last_skipped_us", BigInteger, nullable=True),
    Column("warning", Text, nullable=True),
    Column("warning_us", BigInteger, nullable=True),
    Column("rival", Text, nullable=True),
    Column("rival_us", BigInteger, nullable=True),
)

knocks = Table(
    "knocks",
    metadata,
    Column("site", Text, primary_key=True),
    Column("machine", Text, primary_key=True),
    Column("first_us", BigInteger, nullable=False),
    Column("last_us", BigInteger, nullable=False),
)

catalogue = Table(
    "catalogue",
    metadata,
    Column("code", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("target", Boolean, nullable=False),
    CheckConstraint("severity IN ('low', 'medium', 'high')", name="severity"),
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=True),
    Column("topic", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("received_us", BigInteger, nullable=False),
    # An agent that never learns that its bad event was taken sends it again; once is enough.
    UniqueConstraint("topic", "reason", "sha256"),
    Index("ix_quarantine_reason", "reason", "id"),
    Index("ix_quarantine_machine", "machine_id"),
)

# What was left out because a machine had too much of it; 0 stands for messages of no machine.
excess = Table(
    "excess",
    metadata,
    Column("machine_id", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("since_us", BigInteger, nullable=False),
    Column("last_us", BigInteger, nullable=False),
)

model_versions = Table(
    "model_versions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("created_us", BigInteger, nullable=False),
    Column("weights", Text, nullable=False),
    Column("report", Text, nullable=False),
    Column("parent_id", Integer, nullable=True),
    Column("targets", Text, nullable=False, server_default="[]"),
    Column("pruned", Boolean, nullable=False, server_default=false()),  # its weights file is gone
)

# The bytes of weights, for processes that share a database but no folder; SQLite has files alone.
weights = Table(
    "weights",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# The champion is the version promoted last; the one that served at a moment is the last promoted by then.
promotions = Table(
    "promotions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version_id", ForeignKey("model_versions.id"), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("reason", Text, nullable=True),
    Index("ix_promotions_at", "at_us"),
)

# One learning of one machine. Times are wall time, because leases are; ``attempt`` fences: whoever holds an
# older one has lost the job and can commit nothing.
jobs = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("started_us", BigInteger, nullable=True),
    Column("finished_us", BigInteger, nullable=True),
    Column("finished_plant_us", BigInteger, nullable=True),  # as the plant's clock had it, like a version's
    Column("owner", Text, nullable=True),
    Column("lease_us", BigInteger, nullable=True),
    Column("attempt", Integer, nullable=False),
    Column("cut_off", Integer, nullable=False),  # how many of its attempts ended without a word
    Column("progress", Text, nullable=False),
    Column("message", Text, nullable=True),
    Column("version_id", ForeignKey("model_versions.id"), nullable=True),
    # A machine has one open job at a time, however often and from wherever it is asked for.
    Index(
        "uq_jobs_open",
        "machine_id",
        unique=True,
        sqlite_where=text("state IN ('collecting', 'queued', 'running')"),
    ),
    CheckConstraint(
        "state IN ('collecting', 'queued', 'running', 'promoted', 'rejected', 'failed', 'cancelled')",
        name="state",
    ),
)

# The answer a request with this key got, so that a repeated one gets the same.
idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Text, primary_key=True),
    Column("request", Text, nullable=False),  # sha256
    Column("job_id", ForeignKey("jobs.id"), nullable=False),
    Column("created_us", BigInteger, nullable=False),
)

# Windows that were chosen to be remembered, keyed by code. They never change; versions share them.
samples = Table(
    "samples",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("features", Integer, nullable=False),  # version of the definition of the figures
    Column("codes", LargeBinary, nullable=False),
    Column("counts", LargeBinary, nullable=False),
    Column("outcomes", LargeBinary, nullable=False),  # the codes that came
    Column("tracked", LargeBinary, nullable=False),
    Column("history", LargeBinary, nullable=False),
    Column("context", LargeBinary, nullable=False),
    Index("ix_samples_machine", "machine_id"),
)

# What each version has learned, and in which order.
tasks = Table(
    "tasks",
    metadata,
    Column("version_id", ForeignKey("model_versions.id"), primary_key=True, autoincrement=False),
    Column("machine_id", ForeignKey("machines.id"), primary_key=True, autoincrement=False),
    Column("place", Integer, nullable=False),
    Column("offered", Integer, nullable=False),
    Column("frequency", Text, nullable=False),
)

memories = Table(
    "memories",
    metadata,
    Column("version_id", ForeignKey("model_versions.id"), primary_key=True, autoincrement=False),
    Column("sample_id", ForeignKey("samples.id"), primary_key=True, autoincrement=False),
    Column("held_out", Boolean, nullable=False),
    Index("ix_memories_sample", "sample_id"),
    sqlite_with_rowid=False,
)

# A machine's held-out later windows; the newest exam of a machine is the one that counts.
exams = Table(
    "exams",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("made_us", BigInteger, nullable=False),
    Column("features", Integer, nullable=False),
    Column("base_rate", Text, nullable=False),
    Column("windows", LargeBinary, nullable=False),
    Index("ix_exams_machine", "machine_id", "id"),
)

marks = Table(
    "marks",
    metadata,
    Column("version_id", ForeignKey("model_versions.id"), primary_key=True, autoincrement=False),
    Column("exam_id", ForeignKey("exams.id"), primary_key=True, autoincrement=False),
    Column("average_precision", Float, nullable=True),
    Column("brier_skill", Float, nullable=True),
    Column("macro_f1", Float, nullable=True),
    Column("by_code", Text, nullable=False),
    Column("probabilities", LargeBinary, nullable=True),
    Index("ix_marks_exam", "exam_id"),
)

# Only ever added to: who changed what, when and why.
audit = Table(
    "audit",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("at_us", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("reason", Text, nullable=True),
    Column("origin", Text, nullable=True),  # the address it was asked from; none where the service did it itself
)

# People; of a password only its argon2 hash is kept, of a token only its sha256.
users = Table(
    "users",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("sites", Text, nullable=True),  # JSON; none is every site
    Column("password", Text, nullable=False),
    Column("must_change", Boolean, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("signed_in_us", BigInteger, nullable=True),
    UniqueConstraint("name"),
    CheckConstraint("role IN ('viewer', 'operator', 'admin')", name="role"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("prefix", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("seen_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("origin", Text, nullable=True),
    UniqueConstraint("prefix"),
    Index("ix_sessions_user", "user_id"),
    Index("ix_sessions_expires", "expires_us"),
)

keys = Table(
    "keys",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("sites", Text, nullable=True),
    Column("created_us", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_us", BigInteger, nullable=True),
    Column("used_us", BigInteger, nullable=True),
    UniqueConstraint("name"),
    UniqueConstraint("prefix"),
    CheckConstraint("role IN ('viewer', 'operator', 'admin')", name="role"),
)

# Immutable once written: what was served is what gets scored.
forecasts = Table(
    "forecasts",
    metadata,
    Column("machine_id", ForeignKey("machines.id"), primary_key=True, autoincrement=False),
    Column("as_of_us", BigInteger, primary_key=True, autoincrement=False),
    Column("version_id", ForeignKey("model_versions.id"), nullable=False),
    Column("status", Text, nullable=False),
    Column("events_seen", Integer, nullable=False),
    Column("coverage", Float, nullable=False),
    Column("probabilities", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# What scoring needs of a version, kept apart from its weights, which may be pruned.
version_measures = Table(
    "version_measures",
    metadata,
    Column(
        "version_id", ForeignKey("model_versions.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    Column("lookback_us", BigInteger, nullable=False),
    Column("horizon_us", BigInteger, nullable=False),
    Column("codes", LargeBinary, nullable=False),
    Column("thresholds", LargeBinary, nullable=False),
)

# Up to where a machine's forecasts have been scored; ``late`` counts the commits that reached behind it.
scored = Table(
    "scored",
    metadata,
    Column("machine_id", ForeignKey("machines.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("through_us", BigInteger, nullable=False),
    Column("late", BigInteger, nullable=False),
)

# ``marks`` has a byte for each target code of the forecast's version: 1 it came, 2 it was in the evidence
# window, 4 it was announced; ``base_rates`` a float32. ``stale`` asks for another scoring.
outcomes = Table(
    "outcomes",
    metadata,
    Column("machine_id", Integer, primary_key=True, autoincrement=False),
    Column("as_of_us", BigInteger, primary_key=True, autoincrement=False),
    Column("horizon_end_us", BigInteger, nullable=False),
    Column("events_came", Integer, nullable=False),
    Column("unheard", Boolean, nullable=False),
    Column("marks", LargeBinary, nullable=False),
    Column("base_rates", LargeBinary, nullable=False),
    Column("scored_us", BigInteger, nullable=False),
    Column("revised", Integer, nullable=False),
    Column("stale", SmallInteger, nullable=False),
    ForeignKeyConstraint(
        ["machine_id", "as_of_us"], ["forecasts.machine_id", "forecasts.as_of_us"], ondelete="CASCADE"
    ),
    Index("ix_outcomes_horizon", "machine_id", "horizon_end_us"),
    Index(
        "ix_outcomes_stale",
        "machine_id",
        "stale",
        "as_of_us",
        sqlite_where=text("stale = 1"),
    ),
    sqlite_with_rowid=False,
)

# What people do not want to hear of, until when and why, in plant time. Nothing that forecasts reads these.
shelves = Table(
    "shelves",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("code", Integer, nullable=False),
    Column("from_us", BigInteger, nullable=False),
    Column("until_us", BigInteger, nullable=False),
    Column("lifted_us", BigInteger, nullable=True),
    Column("who", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("ix_shelves_machine", "machine_id", "until_us"),
    Index("ix_shelves_until", "until_us"),
)

maintenance = Table(
    "maintenance",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("site", Text, nullable=False),
    Column("machine", Text, nullable=True),  # the whole site unless named
    Column("from_us", BigInteger, nullable=False),
    Column("until_us", BigInteger, nullable=False),
    Column("cancelled_us", BigInteger, nullable=True),
    Column("who", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("ix_maintenance_until", "until_us"),
)

# A likely alarm that was news. ``rearmed_us`` is since when there may be another of its machine and code, after
# a quiet time.
notices = Table(
    "notices",
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
    # Never two open for one alarm, whichever process opens them.
    Index(
        "uq_notices_open",
        "machine_id",
        "code",
        unique=True,
        sqlite_where=text("closed_us IS NULL"),
    ),
    Index("ix_notices_machine", "machine_id", "id"),
    Index("ix_notices_rearmed", "rearmed_us"),
)

acknowledgements = Table(
    "acknowledgements",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("code", Integer, nullable=False),
    Column("notice_id", ForeignKey("notices.id", ondelete="SET NULL"), nullable=True),
    Column("at_us", BigInteger, nullable=False),
    Column("ended_us", BigInteger, nullable=True),  # when the alarm was no longer likely
    Column("who", Text, nullable=False),
    Column("note", Text, nullable=True),
    Index("ix_acknowledgements_machine", "machine_id", "id"),
    Index("ix_acknowledgements_notice", "notice_id"),
    Index("ix_acknowledgements_ended", "ended_us"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("severity", Text, nullable=False),  # the least
    Column("site", Text, nullable=True),
    Column("machine", Text, nullable=True),
    Column("enabled", Boolean, nullable=False),
    Column("trouble", Text, nullable=True),
    Column("created_us", BigInteger, nullable=False),
    CheckConstraint("severity IN ('low', 'medium', 'high')", name="severity"),
)

# Written with the notice, in one transaction, and tried until somebody took it; times are wall time. Whoever
# takes one up moves ``next_try_us`` on first, so that two couriers never try the same one at once.
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("notice_id", ForeignKey("notices.id", ondelete="CASCADE"), nullable=False),
    Column("webhook_id", ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    Column("key", Uuid, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_try_us", BigInteger, nullable=True),  # null once it is over
    Column("status", Integer, nullable=True),
    Column("answer", Text, nullable=True),
    Column("delivered_us", BigInteger, nullable=True),
    Column("given_up_us", BigInteger, nullable=True),
    UniqueConstraint("notice_id", "webhook_id"),
    Index("ix_deliveries_webhook", "webhook_id"),
    Index("ix_deliveries_due", "next_try_us"),
)

# Who may come in at the broker, and never with what: the broker keeps the password's hash, nobody the password.
credentials = Table(
    "credentials",
    metadata,
    Column("machine_id", ForeignKey("machines.id"), primary_key=True, autoincrement=False),
    Column("username", Text, nullable=False),
    Column("client_id", Text, nullable=False),
    Column("generation", Integer, nullable=False),  # grows whenever a password is issued
    Column("issued_us", BigInteger, nullable=False),
    Column("rotated_us", BigInteger, nullable=True),
    Column("revoked_us", BigInteger, nullable=True),
    Column("locked_out_us", BigInteger, nullable=True),  # when the broker was found to keep it out
    Column("unconfirmed_us", BigInteger, nullable=True),  # a password is being issued since then
    UniqueConstraint("username"),
)

# Which installation this is; the broker has the same identity, and both travel with backups and copies.
installation = Table(
    "installation",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # always 1
    Column("identity", Text, nullable=False),
)

# Whose turn it is to do what is done once in the whole cluster; times are the database's own.
turns = Table(
    "turns",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("until_us", BigInteger, nullable=False),
)

# Who is at work on this database, and how each of them is; who has not been seen for long is gone.
processes = Table(
    "processes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("roles", Text, nullable=False),  # separated by commas
    Column("since_us", BigInteger, nullable=False),
    Column("seen_us", BigInteger, nullable=False),
    Column("report", Text, nullable=False),  # JSON
)
