"""The access page: users, API keys, MQTT credentials and the audit log."""

from service.page.access.page import access

__all__ = ["access"]
