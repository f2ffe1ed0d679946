"""Users, sessions, API keys, MQTT credentials and the audit log."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from service.database.tables.base import RowId, metadata

# Append-only: a trigger rejects updates and deletes.
audit_log = Table(
    "audit_log",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("at_us", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("reason", Text, nullable=True),
    Column("client_ip", Text, nullable=True),  # null for actions of the service
)

# Passwords are stored as argon2 hashes, tokens as sha256 digests.
users = Table(
    "users",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("sites", Text, nullable=True),  # JSON list; null means every site
    Column("password", Text, nullable=False),
    Column("must_change", Boolean, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("last_login_us", BigInteger, nullable=True),
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
    Column("last_seen_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("client_ip", Text, nullable=True),
    UniqueConstraint("prefix"),
    Index("ix_sessions_user", "user_id"),
    Index("ix_sessions_expires", "expires_us"),
)

api_keys = Table(
    "api_keys",
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
    Column("last_used_us", BigInteger, nullable=True),
    UniqueConstraint("name"),
    UniqueConstraint("prefix"),
    CheckConstraint("role IN ('viewer', 'operator', 'admin')", name="role"),
)

# MQTT credentials of machines, without passwords: the broker keeps only their hashes.
credentials = Table(
    "credentials",
    metadata,
    Column("machine_id", ForeignKey("machines.id"), primary_key=True, autoincrement=False),
    Column("username", Text, nullable=False),
    Column("client_id", Text, nullable=False),
    Column("generation", Integer, nullable=False),  # incremented with every new password
    Column("issued_us", BigInteger, nullable=False),
    Column("rotated_us", BigInteger, nullable=True),
    Column("revoked_us", BigInteger, nullable=True),
    Column("locked_out_us", BigInteger, nullable=True),  # when the broker was found to refuse it
    Column("unconfirmed_us", BigInteger, nullable=True),  # start of an unfinished password change
    UniqueConstraint("username"),
)
