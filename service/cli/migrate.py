"""``alarmcast migrate``: upgrade the schema before a new version is rolled out."""

import typer

from service.app.configuration import load_settings
from service.app.stores import open_stores
from service.cli.arguments import DataDir


def migrate(data_dir: DataDir = None) -> None:
    """Upgrade the database schema to this version; ``serve`` does the same at startup."""
    with open_stores(load_settings(data_dir=data_dir)):
        typer.echo("The database has the schema of this version.")
