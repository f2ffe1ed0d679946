"""Errors of the agent; each message says what to do.

EdgeError
├── ConfigRejected    the configuration cannot work; the agent does not start
└── SpoolUnusable     the spool cannot be opened or written
"""


class EdgeError(Exception):
    """An error that a person must fix; the message says how."""


class ConfigRejected(EdgeError):
    """A setting is missing, unknown or impossible."""


class SpoolUnusable(EdgeError):
    """The spool file cannot be opened, is not a spool, or its disk refuses to write."""
