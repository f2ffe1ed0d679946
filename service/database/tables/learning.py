"""Model versions, training jobs, replay memory and evaluation."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    false,
    text,
)

from service.database.tables.base import RowId, metadata

model_versions = Table(
    "model_versions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("created_us", BigInteger, nullable=False),
    Column("weights", Text, nullable=False),
    Column("report", Text, nullable=False),
    Column("parent_id", Integer, nullable=True),
    Column("targets", Text, nullable=False, server_default="[]"),
    Column("pruned", Boolean, nullable=False, server_default=false()),  # its weights file was deleted
)

# Weights files for processes that share a database but no folder; unused on SQLite.
weights = Table(
    "weights",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# The champion is the version promoted last; the version that served at a time is the last one promoted by then.
promotions = Table(
    "promotions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version_id", ForeignKey("model_versions.id"), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("reason", Text, nullable=True),
    Index("ix_promotions_at", "at_us"),
)

# Training jobs. Times are wall time, as leases are. ``attempt`` is a fencing token: a process with an older one
# has lost the job and cannot commit.
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
    Column("finished_plant_us", BigInteger, nullable=True),  # in plant time, like a version's
    Column("owner", Text, nullable=True),
    Column("lease_us", BigInteger, nullable=True),
    Column("attempt", Integer, nullable=False),
    Column("interruptions", Integer, nullable=False),  # attempts that ended without a result
    Column("progress", Text, nullable=False),
    Column("message", Text, nullable=True),
    Column("version_id", ForeignKey("model_versions.id"), nullable=True),
    # At most one open job per machine.
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

# Idempotency keys of enrolment requests: a repeated request gets the same job.
idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Text, primary_key=True),
    Column("request", Text, nullable=False),  # sha256
    Column("job_id", ForeignKey("jobs.id"), nullable=False),
    Column("created_us", BigInteger, nullable=False),
)

# Windows of a machine in the replay memory, keyed by code, compressed together. Immutable and shared by versions.
samples = Table(
    "samples",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("features", Integer, nullable=False),  # version of the feature definition
    Column("windows", LargeBinary, nullable=False),
    Index("ix_samples_machine", "machine_id"),
)

# The machines a version was trained on, in order, and which of their windows it keeps: a byte per window,
# compressed (0 dropped, 1 replayed, 2 held out). A pruned version keeps none.
tasks = Table(
    "tasks",
    metadata,
    Column("version_id", ForeignKey("model_versions.id"), primary_key=True, autoincrement=False),
    Column("machine_id", ForeignKey("machines.id"), primary_key=True, autoincrement=False),
    Column("position", Integer, nullable=False),
    Column("offered", Integer, nullable=False),
    Column("frequency", Text, nullable=False),
    Column("samples_id", ForeignKey("samples.id")),
    Column("kept", LargeBinary),
    Index("ix_tasks_samples", "samples_id"),
)

# Held-out later windows of a machine; the newest set counts.
holdout_sets = Table(
    "holdout_sets",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("features", Integer, nullable=False),
    Column("base_rate", Text, nullable=False),
    Column("windows", LargeBinary, nullable=False),
    Index("ix_holdout_sets_machine", "machine_id", "id"),
)

evaluation_results = Table(
    "evaluation_results",
    metadata,
    Column("version_id", ForeignKey("model_versions.id"), primary_key=True, autoincrement=False),
    Column("holdout_set_id", ForeignKey("holdout_sets.id"), primary_key=True, autoincrement=False),
    Column("average_precision", Float, nullable=True),
    Column("brier_skill", Float, nullable=True),
    Column("macro_f1", Float, nullable=True),
    Column("by_code", Text, nullable=False),
    Column("probabilities", LargeBinary, nullable=True),
    Index("ix_evaluation_results_holdout_set", "holdout_set_id"),
)
