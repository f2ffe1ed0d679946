"""Shared metadata and column types of all tables."""

from sqlalchemy import BigInteger, Integer, MetaData

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Partial indexes are declared with ``sqlite_where`` only. The migration creates the same ones on PostgreSQL;
# ``postgresql_where`` would load that dialect into every process, which is slower than loading all tables.

# SQLite generates row ids only for a column declared INTEGER.
RowId = BigInteger().with_variant(Integer, "sqlite")
