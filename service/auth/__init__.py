"""Users, sessions, API keys, login throttling, permissions of a request, the audit log."""
