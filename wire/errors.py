"""Why a message or an event was refused, in words that a person and a counter can both use.

WireError
├── TopicRejected      the topic does not say who speaks
└── PayloadRejected    the bytes are not what the topic promises
"""


class WireError(ValueError):
    """Something on the wire breaks the contract; ``reason`` is short and stable enough to count by."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class TopicRejected(WireError):
    """The topic is not one of the contract's, or names an impossible site or machine."""


class PayloadRejected(WireError):
    """The payload cannot be read as the model its topic promises."""
