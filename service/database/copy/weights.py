"""Weights on their way: rows in PostgreSQL, files beside SQLite, in both named by a hash of their bytes."""

from hashlib import sha256

from sqlalchemy import select

from service.database.copy.endpoint import CopyEndpoint
from service.database.dialect import insert_new
from service.database.tables import model_versions, weights
from service.database.weight_files import WeightsFolder
from service.errors import Unavailable


def copy_weights(source: CopyEndpoint, target: CopyEndpoint) -> tuple[str, ...]:
    """Give the target every version's weights; return the versions whose weights the source has lost.

    Those are no obstacle: they serve after the copy as little as before.
    """
    query = select(model_versions.c.id, model_versions.c.weights).where(model_versions.c.pruned.is_(False))
    with source.database.read() as connection:
        versions = connection.execute(query.order_by(model_versions.c.id)).all()
    lost = []
    for number, name in versions:
        body = _read(source, name)
        if body is None:
            lost.append(f"v{number}")
        else:
            _write(target, name, body)
    return tuple(lost)


def _read(side: CopyEndpoint, name: str) -> bytes | None:
    if side.folder is not None:
        try:
            return WeightsFolder(side.folder / "weights").read(name)
        except Unavailable:
            return None
    with side.database.read() as connection:
        body = connection.execute(select(weights.c.body).where(weights.c.sha256 == name)).scalar()
    return body if body is not None and sha256(body).hexdigest() == name else None


def _write(side: CopyEndpoint, name: str, body: bytes) -> None:
    if side.folder is not None:
        WeightsFolder(side.folder / "weights").write(name, body)
        return
    with side.database.write() as connection:
        connection.execute(insert_new(connection, weights, {"sha256": name, "body": body}))
