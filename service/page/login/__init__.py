"""Sign-in and password pages."""
