"""What can go wrong at the edge, in sentences an electrician can act on.

EdgeError
├── ConfigRejected    the configuration cannot work; the agent does not start
└── SpoolUnusable     the spool cannot be opened or written
"""


class EdgeError(Exception):
    """Something the person at the machine must mend; the message says what to do."""


class ConfigRejected(EdgeError):
    """A setting is missing, unknown or impossible."""


class SpoolUnusable(EdgeError):
    """The spool file cannot be opened, is not a spool, or its disk refuses to write."""
