"""Refuse to listen beyond loopback while the broker accepts unauthenticated clients."""

import time

from service.app.http_server import is_loopback
from service.broker_access.build import dynamic_security
from service.broker_access.models import BrokerAuthState
from service.errors import InputRejected, Unavailable
from service.settings import DynamicSecurity, Settings

_TIMEOUT_S = 15.0  # for a broker that is just being started
_RETRY_S = 0.5
_ADVICE = (
    "Secure it (alarmcast admin broker-init), listen on 127.0.0.1 only, or, if it is secured in another way, set "
    "ALARMCAST_ALLOW_OPEN_BROKER=true."
)


def require_secured_broker(settings: Settings, *, timeout_s: float = _TIMEOUT_S) -> None:
    """Raise if the service listens beyond loopback and the broker has no dynamic security.

    If the settings require dynamic security there is nothing to check: the service is not ready without it.
    """
    mode = settings.broker_dynamic_security
    if settings.allow_open_broker or mode is DynamicSecurity.ON or is_loopback(settings.host):
        return
    security = dynamic_security(settings)
    if security is None:
        raise InputRejected(
            f"Refusing to listen on {settings.host}: broker_dynamic_security is off, so anyone who reaches the "
            f"broker can connect as any machine. {_ADVICE}"
        )
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            state, reason = security.probe()
        except Unavailable as error:
            if time.monotonic() > deadline:
                raise InputRejected(
                    f"Refusing to listen on {settings.host}: it is unknown whether the broker is secured. "
                    f"{error} Start the broker first, or set ALARMCAST_BROKER_DYNAMIC_SECURITY=on."
                ) from None
            time.sleep(_RETRY_S)
            continue
        if state is not BrokerAuthState.ON:
            raise InputRejected(
                f"Refusing to listen on {settings.host}: anyone can connect to the broker as any machine, "
                f"because {reason}. {_ADVICE}"
            )
        return
