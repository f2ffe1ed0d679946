"""The installation's identity, leader leases and the process registry."""

from sqlalchemy import BigInteger, Column, Integer, Table, Text

from service.database.tables.base import metadata

# The broker stores the same identity; backups and database copies keep it.
installation = Table(
    "installation",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # always 1
    Column("identity", Text, nullable=False),
)

# Leader leases; times are the database's clock.
leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
)

# Registry of the processes that use this database, with their last health report.
processes = Table(
    "processes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("roles", Text, nullable=False),  # separated by commas
    Column("since_us", BigInteger, nullable=False),
    Column("last_seen_us", BigInteger, nullable=False),
    Column("report", Text, nullable=False),  # JSON
)
