"""Access: who may sign in, which programs may ask, which machines the broker lets in, and what was changed."""

from service.page.access.page import access

__all__ = ["access"]
