"""Connections, schema, migrations, backup and copy of the database."""
