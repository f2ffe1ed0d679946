"""Enrolment: jobs, memories, exams, and what each version has learned."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Step forwards."""
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_table(
        "exams",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("made_us", sa.BigInteger(), nullable=False),
        sa.Column("features", sa.Integer(), nullable=False),
        sa.Column("base_rate", sa.Text(), nullable=False),
        sa.Column("windows", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_exams_machine_id_machines")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_exams")),
    )
    with op.batch_alter_table("exams", schema=None) as batch_op:
        batch_op.create_index("ix_exams_machine", ["machine_id", "id"], unique=False)

    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=True),
        sa.Column("finished_us", sa.BigInteger(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_us", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("cut_off", sa.Integer(), nullable=False),
        sa.Column("progress", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("version_id", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "state IN ('collecting', 'queued', 'running', 'promoted', 'rejected', 'failed', 'cancelled')",
            name=op.f("ck_jobs_state"),
        ),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_jobs_machine_id_machines")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["model_versions.id"], name=op.f("fk_jobs_version_id_model_versions")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(
            "uq_jobs_open",
            ["machine_id"],
            unique=True,
            sqlite_where=sa.text("state IN ('collecting', 'queued', 'running')"),
            postgresql_where=sa.text("state IN ('collecting', 'queued', 'running')"),
        )

    op.create_table(
        "samples",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("features", sa.Integer(), nullable=False),
        sa.Column("codes", sa.LargeBinary(), nullable=False),
        sa.Column("counts", sa.LargeBinary(), nullable=False),
        sa.Column("outcomes", sa.LargeBinary(), nullable=False),
        sa.Column("tracked", sa.LargeBinary(), nullable=False),
        sa.Column("history", sa.LargeBinary(), nullable=False),
        sa.Column("context", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_samples_machine_id_machines")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_samples")),
    )
    with op.batch_alter_table("samples", schema=None) as batch_op:
        batch_op.create_index("ix_samples_machine", ["machine_id"], unique=False)

    op.create_table(
        "tasks",
        sa.Column("version_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("machine_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("offered", sa.Integer(), nullable=False),
        sa.Column("frequency", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_tasks_machine_id_machines")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["model_versions.id"], name=op.f("fk_tasks_version_id_model_versions")
        ),
        sa.PrimaryKeyConstraint("version_id", "machine_id", name=op.f("pk_tasks")),
    )
    op.create_table(
        "idempotency",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_idempotency_job_id_jobs")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_idempotency")),
    )
    op.create_table(
        "marks",
        sa.Column("version_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("exam_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("average_precision", sa.Float(), nullable=True),
        sa.Column("brier_skill", sa.Float(), nullable=True),
        sa.Column("macro_f1", sa.Float(), nullable=True),
        sa.Column("by_code", sa.Text(), nullable=False),
        sa.Column("probabilities", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["exam_id"], ["exams.id"], name=op.f("fk_marks_exam_id_exams")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["model_versions.id"], name=op.f("fk_marks_version_id_model_versions")
        ),
        sa.PrimaryKeyConstraint("version_id", "exam_id", name=op.f("pk_marks")),
    )
    with op.batch_alter_table("marks", schema=None) as batch_op:
        batch_op.create_index("ix_marks_exam", ["exam_id"], unique=False)

    op.create_table(
        "memories",
        sa.Column("version_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column(
            "sample_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("held_out", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name=op.f("fk_memories_sample_id_samples")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["model_versions.id"], name=op.f("fk_memories_version_id_model_versions")
        ),
        sa.PrimaryKeyConstraint("version_id", "sample_id", name=op.f("pk_memories")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("memories", schema=None) as batch_op:
        batch_op.create_index("ix_memories_sample", ["sample_id"], unique=False)

    with op.batch_alter_table("agents", schema=None) as batch_op:
        batch_op.add_column(sa.Column("since_us", sa.BigInteger(), nullable=True))

    with op.batch_alter_table("machines", schema=None) as batch_op:
        batch_op.add_column(sa.Column("state", sa.Text(), server_default="registered", nullable=False))
        batch_op.add_column(sa.Column("reason", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("learned_us", sa.BigInteger(), nullable=True))

    with op.batch_alter_table("model_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("parent_id", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("targets", sa.Text(), server_default="[]", nullable=False))
        batch_op.add_column(sa.Column("pruned", sa.Boolean(), server_default=sa.false(), nullable=False))

    with op.batch_alter_table("promotions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("reason", sa.Text(), nullable=True))
