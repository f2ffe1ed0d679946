"""``alarmcast config check``: looks at everything ``serve`` needs and says in words what is wrong.

Nothing is started and nothing is changed. One check after the other, from what is nearest to what is farthest;
where one fails, those that need it are not tried.
"""

import os
import shutil
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from forecasting.window import WindowSpec
from service.app.configuration import Configuration, plant_clock, sqlite_url
from service.app.http_server import is_loopback, listen, require_tls
from service.broker_access.build import dynamic_security
from service.broker_access.models import BrokerAuthState
from service.database.backup import RESTORE_MARKER
from service.database.engine import Database
from service.database.locks import WriterLock
from service.database.weight_files import WeightsFolder
from service.errors import DatabaseInUse, InputRejected, ServiceError, Unavailable
from service.forecasts.version_store import VersionStore
from service.learning.training_data import window_spec
from service.machines.catalogue import size_warning
from service.machines.catalogue_store import CatalogueStore
from service.messaging.broker_connection import broker_config, connection_error, needs_tls
from service.settings import DynamicSecurity, Settings
from wire.broker_check import Finding, check_broker
from wire.timestamps import EARLIEST, LATEST

_SECONDS = 5  # that each step may take
_LEAST_FREE = 1 << 30
_EARLIEST_CLOCK = EARLIEST.replace(year=2025)


def examine(configured: Configuration) -> Iterator[Finding]:
    """Yield findings as they are made."""
    settings = configured.settings
    given = len(configured.origins)
    yield Finding("configuration", ok=True, message=f"{given} settings are given, the others are defaults")
    for warning in configured.warnings:
        yield Finding("secret", ok=None, message=warning)
    folder = _data_folder(settings.data_dir)
    yield folder
    holder = _holder(settings) if folder.ok else None
    yield from _database(settings, holder)
    yield _port(settings, holder)
    yield from _refused("encryption", require_tls, settings)
    yield from _tls_files(settings)
    yield _clock(settings)
    yield from _broker(settings)
    yield from _refused("guard", partial(require_secured_broker, timeout_s=0.0), settings)


def _data_folder(folder: Path) -> Finding:
    nearest = next(part for part in (folder.resolve(), *folder.resolve().parents) if part.exists())
    if not nearest.is_dir():
        return Finding("data folder", ok=False, message=f"{nearest} is a file; name a folder with --data-dir")
    if not os.access(nearest, os.W_OK | os.X_OK):
        words = f"cannot write to {nearest}; let the service's user write there, or name another with --data-dir"
        return Finding("data folder", ok=False, message=words)
    free = shutil.disk_usage(nearest).free
    room = f"{free >> 20} MB are free"
    if free < _LEAST_FREE:
        return Finding(
            "data folder", ok=None, message=f"only {room} in {nearest}; when it is full nothing is acked"
        )
    made = "" if nearest == folder.resolve() else " will be made at the first start"
    return Finding("data folder", ok=True, message=f"{folder}{made}, {room}")


def _holder(settings: Settings) -> DatabaseInUse | None:
    """Return which process uses the database in the data folder, if any."""
    lock = settings.data_dir / "alarmcast.lock"
    if not lock.exists():
        return None
    try:
        WriterLock(lock).acquire().release()
    except DatabaseInUse as error:
        return error
    except OSError:
        return None
    return None


def _database(settings: Settings, holder: DatabaseInUse | None) -> Iterator[Finding]:
    if holder is not None:
        yield Finding("writer", ok=None, message=str(holder))
    url = settings.database_url or sqlite_url(settings.data_dir)
    where = shown_url(url)
    try:
        database = Database(url, read_only=True, busy_timeout_s=_SECONDS)
    except ServiceError as error:
        yield Finding("database", ok=False, message=str(error))
        return
    if settings.database_url is None and (settings.data_dir / RESTORE_MARKER).exists():
        yield Finding("restore", ok=None, message="a restore was interrupted; the next start finishes it")
    try:
        if database.is_sqlite and not database.exists:
            yield Finding("database", ok=True, message=f"{where} will be made at the first start")
            return
        schema = database.schema()
        warnings = list(_content_warnings(settings, database)) if schema.is_current else []
    except ServiceError as error:
        yield Finding("database", ok=False, message=f"{where}: {error}")
        return
    finally:
        database.close()
    if schema.is_current:
        yield Finding("database", ok=True, message=f"{where} has schema {schema.found}, the one of this version")
    elif schema.found is None:
        yield Finding("database", ok=True, message=f"{where} is empty; its tables will be made at the first start")
    else:
        words = f"{where} has schema {schema.found} and will be upgraded to {schema.wanted} at the next start"
        yield Finding("database", ok=None, message=f"{words}; make a backup first: alarmcast admin backup FOLDER")
    yield from warnings


def _content_warnings(settings: Settings, database: Database) -> Iterator[Finding]:
    large = size_warning(CatalogueStore(database).entries().values())
    if large is not None:
        yield Finding("catalogue", ok=None, message=large)
    conflict = model_conflict(settings, database)
    if conflict:
        yield Finding("windows", ok=False, message=conflict)


def model_conflict(settings: Settings, database: Database) -> str | None:
    """Say how the settings differ from the model that serves, if its weights are here to be read."""
    weights = WeightsFolder(settings.data_dir / "weights")
    champion = VersionStore(database, weights).champion()
    if champion is None:
        return None
    try:
        return window_conflict(settings, champion.name, weights.load(champion.weights).spec)
    except Unavailable:
        return None  # other hosts may have them; where they are lost, status says so


def _port(settings: Settings, holder: DatabaseInUse | None) -> Finding:
    if holder is not None and holder.url and urlsplit(holder.url).port == settings.port:
        return Finding("API", ok=True, message=f"the service that runs listens at {holder.url}")
    try:
        listen(settings.host, settings.port).close()
    except ServiceError as error:
        return Finding("API", ok=False, message=str(error))
    except (OSError, UnicodeError) as error:
        return Finding(
            "API", ok=False, message=f"no address is known for {settings.host}: {error}; correct --host"
        )
    if not is_loopback(settings.host):
        words = f"{settings.host}:{settings.port} is free; every host in its network can reach it"
        return Finding("API", ok=None, message=words)
    return Finding("API", ok=True, message=f"{settings.host}:{settings.port} is free, for this computer only")


def _refused(check: str, insist: Callable[[Settings], None], settings: Settings) -> Iterator[Finding]:
    """Ask what ``serve`` asks before it listens, and say what it would refuse in its own words."""
    try:
        insist(settings)
    except InputRejected as error:
        yield Finding(check, ok=False, message=str(error))


def _tls_files(settings: Settings) -> Iterator[Finding]:
    """Check every certificate with its key, and every authority, that a setting names."""
    for name in type(settings).model_fields:
        path = getattr(settings, name)
        if path is None or not name.endswith(("tls_cert", "tls_ca")):
            continue
        key = getattr(settings, name.replace("tls_cert", "tls_key"), None) if name.endswith("tls_cert") else None
        try:
            if name.endswith("tls_ca"):
                ssl.create_default_context(cafile=path)
            else:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path, key)
        except ssl.SSLError as error:
            what = (
                f"{path} and {key} do not belong together, or one of them is no PEM file"
                if key
                else f"{path} is no PEM file"
            )
            yield Finding("TLS files", ok=False, message=f"{what} ({error.reason or error}); correct {name}")
        except OSError as error:
            yield Finding(
                "TLS files", ok=False, message=f"cannot read {path} or its key: {error.strerror}; correct {name}"
            )
        else:
            yield Finding(
                "TLS files", ok=True, message=f"{path}{f' and {key} belong together' if key else ' can be read'}"
            )


def _clock(settings: Settings) -> Finding:
    wall, clock = datetime.now(UTC), plant_clock(settings)
    if wall < _EARLIEST_CLOCK:
        words = f"it says {wall.isoformat(timespec='seconds')}; set it, and let it be kept (chrony)"
        return Finding("clock", ok=False, message=words)
    try:
        plant = clock.now()
    except OverflowError:
        plant = LATEST
    if not EARLIEST <= plant < LATEST:
        words = (
            "plant time lies outside 2000 to 2100; correct clock_wall_origin, clock_plant_origin and clock_speed"
        )
        return Finding("clock", ok=False, message=words)
    if settings.clock_speed != 1 or settings.clock_plant_origin is not None:
        words = (
            f"plant time is {plant.isoformat(timespec='seconds')} and runs {settings.clock_speed:g} times as fast"
        )
        return Finding(
            "clock", ok=None, message=f"{words}; that is for demonstrations, agents need the same settings"
        )
    return Finding("clock", ok=True, message=f"it says {wall.isoformat(timespec='seconds')}")


def _broker(settings: Settings) -> Iterator[Finding]:
    broker = broker_config(settings)
    findings = list(check_broker(broker, settings_prefix="broker_", tls_hint=needs_tls(broker)))
    yield from findings
    if all(finding.ok is not False for finding in findings):
        yield _credentials(settings)


def _credentials(settings: Settings) -> Finding:
    version = settings.broker_mqtt_version.value
    why = connection_error(broker_config(settings), client_id=settings.broker_client_id, seconds=_SECONDS)
    if why is None:
        return Finding("credentials", ok=True, message=f"the broker accepts the credentials with MQTT {version}")
    words = "check broker_username, the password in ALARMCAST_BROKER_PASSWORD, and broker_mqtt_version"
    return Finding("credentials", ok=False, message=f"{why} (MQTT {version}); {words}")


def shown_url(url: str) -> str:
    """Return a database's URL without its password and without options, which may hold one."""
    parts = urlsplit(url)
    if not parts.hostname:
        return url.partition("?")[0]
    user = f"{parts.username}:***@" if parts.password else f"{parts.username}@" if parts.username else ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{user}{parts.hostname}{port}{parts.path}"


_MINUTE = timedelta(minutes=1)


def window_conflict(settings: Settings, version: str, spec: WindowSpec) -> str | None:
    """Say how settings and model differ, and what to do; None if they agree."""
    if window_spec(settings) == spec:
        return None
    lookback, horizon = f"{spec.lookback / _MINUTE:g}", f"{spec.horizon / _MINUTE:g}"
    return (
        f"The settings say lookback_minutes {settings.lookback_minutes} and horizon_minutes "
        f"{settings.horizon_minutes}, but {version} was learned with {lookback} and {horizon}. Set "
        f"ALARMCAST_LOOKBACK_MINUTES={lookback} and ALARMCAST_HORIZON_MINUTES={horizon} again; for other lengths "
        "begin with an empty data folder and load the histories of all machines there."
    )


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
