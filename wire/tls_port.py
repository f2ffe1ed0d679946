"""Whether a port speaks TLS: whoever speaks plain MQTT there is only hung up on and never told why.

Both sides ask, so it stands here; nothing of it travels.
"""

import socket
import ssl


def speaks_tls(host: str, port: int, *, seconds: float = 2.0) -> bool:
    """Say whether a TLS handshake succeeds there, or is refused as TLS refuses; nobody is trusted by that."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout=seconds) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except (OSError, ValueError):
        return False
