"""Machines, their agents and events, and rejected messages."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from service.database.tables.base import RowId, metadata

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
    Column("reason", Text, nullable=True),  # of a failure
    Column("learned_us", BigInteger, nullable=True),  # last training, in plant time
    UniqueConstraint("site", "machine"),
)

# An epoch is one spool or one history file; events refer to it by this id instead of its UUID.
epochs = Table(
    "epochs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("machine_id", ForeignKey("machines.id"), nullable=False),
    Column("epoch", Uuid, nullable=False),
    # Highest sequence number stored, where several processes write; null if not determined yet.
    Column("last_seq", BigInteger, nullable=True),
    UniqueConstraint("machine_id", "epoch"),
)

# Epoch and sequence number identify an event. PostgreSQL has a partition per month (see partitions.py), so its
# primary key includes time and flag.
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
    # Covering index of every window query, without flagged events. Events of one moment are ordered by code.
    # SQLite needs every column of the query in it, also that of its WHERE.
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
    Column("last_seen_us", BigInteger, nullable=False),
    Column("first_seen_us", BigInteger, nullable=True),  # first message
    Column("state_us", BigInteger, nullable=True),  # time of the reported state
    Column("skipped", BigInteger, nullable=True),
    Column("last_skipped", Text, nullable=True),
    Column("last_skipped_us", BigInteger, nullable=True),
    Column("warning", Text, nullable=True),
    Column("warning_us", BigInteger, nullable=True),
    Column("duplicate", Text, nullable=True),
    Column("duplicate_us", BigInteger, nullable=True),
)

unregistered_machines = Table(
    "unregistered_machines",
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
    *(Column(name, Text, nullable=True) for name in ("cause", "consequence", "action", "link")),
    Column("origin", Text, nullable=False, server_default="admin"),  # or machine: as an agent described it
    Column("described_by", Integer, nullable=True),  # the machine of such an entry
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
    # An agent whose ack was lost sends its rejected event again; it is stored once.
    UniqueConstraint("topic", "reason", "sha256"),
    Index("ix_quarantine_reason", "reason", "id"),
    Index("ix_quarantine_machine", "machine_id"),
)

# Number of items dropped because of a machine's limits; machine 0: messages that belong to no machine.
limit_counts = Table(
    "limit_counts",
    metadata,
    Column("machine_id", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("since_us", BigInteger, nullable=False),
    Column("last_us", BigInteger, nullable=False),
)
