"""The only SQLAlchemy: one schema on SQLite (WAL) or PostgreSQL, and the files of weights beside it."""
