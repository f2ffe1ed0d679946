"""How a receiver knows that a delivery is ours and fresh: an HMAC over the time and the very bytes of the body."""

import hmac
from collections.abc import Mapping
from typing import Final

SIGNATURE: Final = "Alarmcast-Signature"
DELIVERY: Final = "Alarmcast-Delivery"  # the same for every try of one delivery, so that a receiver takes it once
_VERSION = "v1"


def sign(secret: str, body: bytes, at: int) -> str:
    """Return the signature header of a body sent at a Unix time: ``t=<time>,v1=<hex>``."""
    return f"t={at},{_VERSION}={_digest(secret, body, str(at))}"


def verify(secret: str, header: str, body: bytes, *, now: float, tolerance: float = 300.0) -> bool:
    """Say whether a body was signed with the secret at most ``tolerance`` seconds away from ``now``.

    For receivers: compare the bytes as they came, before they are parsed. Never raises, whatever the header is.
    """
    parts: Mapping[str, str] = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    at, said = parts.get("t", ""), parts.get(_VERSION, "")
    if not (at.isascii() and at.isdigit() and len(at) <= len(str(2**63)) and said.isascii()):
        return False
    return hmac.compare_digest(said, _digest(secret, body, at)) and abs(now - int(at)) <= tolerance


def _digest(secret: str, body: bytes, at: str) -> str:
    return hmac.new(secret.encode(), at.encode() + b"." + body, "sha256").hexdigest()
