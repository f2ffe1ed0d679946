"""Forecasts, their outcomes and the progress of scoring."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    text,
)

from service.database.tables.base import metadata

# Immutable: the served forecast is the one that is scored. ``other_horizons`` holds the probabilities of the near,
# then of the far horizon, as float16; null if the version forecasts one horizon.
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
    Column("other_horizons", LargeBinary, nullable=True),
    sqlite_with_rowid=False,
)

# What scoring needs of a model version; its weights may be pruned.
scoring_specs = Table(
    "scoring_specs",
    metadata,
    Column(
        "version_id", ForeignKey("model_versions.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    Column("lookback_us", BigInteger, nullable=False),
    Column("horizon_us", BigInteger, nullable=False),
    Column("codes", LargeBinary, nullable=False),
    Column("thresholds", LargeBinary, nullable=False),
)

# End of the scored period of a machine; ``late`` counts commits with events before it.
scoring_progress = Table(
    "scoring_progress",
    metadata,
    Column("machine_id", ForeignKey("machines.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("through_us", BigInteger, nullable=False),
    Column("late", BigInteger, nullable=False),
)

# ``label_flags`` holds a byte per target code of the version: 1 occurred, 2 in the evidence window, 4 predicted;
# ``base_rates`` a float32 per code. ``stale`` rows are scored again.
outcomes = Table(
    "outcomes",
    metadata,
    Column("machine_id", Integer, primary_key=True, autoincrement=False),
    Column("as_of_us", BigInteger, primary_key=True, autoincrement=False),
    Column("horizon_end_us", BigInteger, nullable=False),
    Column("events_occurred", Integer, nullable=False),
    Column("unobserved", Boolean, nullable=False),
    Column("label_flags", LargeBinary, nullable=False),
    Column("base_rates", LargeBinary, nullable=False),
    Column("scored_us", BigInteger, nullable=False),
    Column("revision_count", Integer, nullable=False),
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
