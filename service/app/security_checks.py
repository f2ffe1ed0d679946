"""Before the service can be reached from elsewhere, the broker that it takes alarms from must be guarded."""

import time

from service.app.http_server import is_loopback
from service.broker_access.build import dynamic_security
from service.broker_access.models import BrokerAuthState
from service.errors import InputRejected, Unavailable
from service.settings import DynamicSecurity, Settings

_PATIENCE = 15.0  # seconds in which a broker that is just being started may answer
_PAUSE = 0.5
_WAYS_OUT = (
    "Guard it (alarmcast admin broker-init), listen on 127.0.0.1 only, or, if somebody else guards it, set "
    "ALARMCAST_ALLOW_OPEN_BROKER=true."
)


def require_secured_broker(settings: Settings, *, patience: float = _PATIENCE) -> None:
    """Refuse to listen beyond loopback in front of a broker where anybody may speak as any machine.

    Where the settings insist on dynamic security there is nothing to ask: the service is not ready without it.
    """
    mode = settings.broker_dynamic_security
    if settings.allow_open_broker or mode is DynamicSecurity.ON or is_loopback(settings.host):
        return
    security = dynamic_security(settings)
    if security is None:
        raise InputRejected(
            f"Refusing to listen on {settings.host}: broker_dynamic_security is off, so anybody who reaches the "
            f"broker may speak as any machine. {_WAYS_OUT}"
        )
    deadline = time.monotonic() + patience
    while True:
        try:
            guard, why_not = security.probe()
        except Unavailable as error:
            if time.monotonic() > deadline:
                raise InputRejected(
                    f"Refusing to listen on {settings.host}: nobody can tell whether the broker is guarded. "
                    f"{error} Start the broker first, or set ALARMCAST_BROKER_DYNAMIC_SECURITY=on."
                ) from None
            time.sleep(_PAUSE)
            continue
        if guard is not BrokerAuthState.ON:
            raise InputRejected(
                f"Refusing to listen on {settings.host}: anybody who reaches the broker may speak as any machine, "
                f"because {why_not}. {_WAYS_OUT}"
            )
        return
