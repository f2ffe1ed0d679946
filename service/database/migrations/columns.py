"""Short forms of columns and indexes for migrations."""

from typing import Any

import sqlalchemy as sa
from alembic import op

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TYPES: dict[str, Any] = {
    "bigint": sa.BigInteger,
    "boolean": sa.Boolean,
    "bytes": sa.LargeBinary,
    "float": sa.Float,
    "integer": sa.Integer,
    "smallint": sa.SmallInteger,
    "text": sa.Text,
    "uuid": sa.Uuid,
}


def columns(spec: str) -> list[sa.Column[Any]]:
    """Parse ``name type`` pairs, separated by commas; ``?`` marks a nullable column, ``!`` a primary key."""
    pairs = [pair.split() for pair in spec.split(",")]
    return [
        sa.Column(
            name,
            _TYPES[kind.rstrip("?!")],
            nullable=kind.endswith("?"),
            primary_key=kind.endswith("!"),
            autoincrement=False,
        )
        for name, kind in pairs
    ]


def row_id(kind: Any = sa.Integer) -> sa.Column[Any]:
    """Return the primary key ``id``."""
    return sa.Column("id", kind, primary_key=True)


def reference(name: str, target: str, kind: Any = sa.Integer, **options: Any) -> sa.Column[Any]:
    """Return a foreign key, not null unless the options say so."""
    key = sa.ForeignKey(target, ondelete=options.pop("ondelete", None))
    return sa.Column(name, kind, key, **{"nullable": False, "autoincrement": False} | options)


def index(table: str, name: str, columns: str, *, where: str | None = None, unique: bool = False) -> None:
    """Create an index of columns separated by spaces."""
    condition = None if where is None else sa.text(where)
    options: dict[str, Any] = {"sqlite_where": condition, "postgresql_where": condition}
    op.create_index(name, table, columns.split(), unique=unique, **options)
