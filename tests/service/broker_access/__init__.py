"""broker_access."""
