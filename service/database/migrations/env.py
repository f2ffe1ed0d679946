"""Alembic's entry point; runs on a given connection, inside its transaction."""

from alembic import context

from service.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # the caller's transaction is used
    render_as_batch=True,
)
context.run_migrations()
