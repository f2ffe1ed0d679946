"""Alembic's entry: always on a connection that the store hands over, inside its transaction."""

from alembic import context

from service.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # the caller's transaction is the one that counts
    render_as_batch=True,
)
context.run_migrations()
