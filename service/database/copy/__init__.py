"""Copy a database to another one, resumable and verified."""
