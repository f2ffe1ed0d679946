"""The API: of a running service, or in this process if none uses the database."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import httpx
import typer

from alarmcast import AlarmcastError, Client, InProcess, Unreachable
from service.app.configuration import load_settings
from service.app.service import Service
from service.app.stores import open_stores
from service.auth.build import local_token
from service.database.locks import WriterLock
from service.errors import DatabaseInUse, InputRejected, Unavailable
from service.settings import Settings

_PATIENCE = httpx.Timeout(60.0, read=600.0)  # a year of history takes a while to be stored


@contextmanager
def api(data_dir: Path | None) -> Iterator[Client]:
    """Yield a client of the running service, or of the same app in this process if there is none.

    What goes wrong becomes the error that it describes.
    """
    settings = load_settings(data_dir=data_dir)
    asked = _elsewhere() or _here(settings)
    if asked is not None:
        with _map_errors(asked.url, "does not answer"), asked.client() as client:
            yield client
        return
    is_new = not settings.data_dir.exists()
    with open_stores(settings) as stores:
        if is_new:
            typer.echo(f"No service runs here; {settings.data_dir} is new and empty.", err=True)
        service = Service(settings, stores)
        here = Client("http://here", key=service.key, transport=InProcess(service.app))
        with _map_errors("http://here", "does not answer"), here as client:
            yield client


@contextmanager
def running_api(data_dir: Path | None) -> Iterator[Client]:
    """Yield a client of the running service, or say that there must be one."""
    asked = _elsewhere() or _here(load_settings(data_dir=data_dir))
    if asked is None:
        raise Unavailable("No service is running, and only a running one learns. Start it: alarmcast serve")
    with _map_errors(asked.url, "no longer answers"), asked.client() as client:
        yield client


@dataclass(frozen=True)
class ServiceAddress:
    """A running service, the key to use, and its certificate if it is known."""

    url: str
    key: str | None = None
    certificate: Path | None = None

    def client(self, timeout: httpx.Timeout = _PATIENCE) -> Client:
        """Return a client of this very service, whatever name its certificate has."""
        verify = True if self.certificate is None else _trust_only(self.certificate)
        return Client(self.url, key=self.key, timeout=timeout, transport=httpx.HTTPTransport(verify=verify))


def _elsewhere() -> ServiceAddress | None:
    """Return the service that the command names with ``--url``, if it names one."""
    options = _options()
    if options.url is None:
        return None
    if options.key is None:
        raise InputRejected(f"To ask the service at {options.url}, give an API key: --key, or ALARMCAST_KEY.")
    return ServiceAddress(options.url, options.key)


def _here(settings: Settings) -> ServiceAddress | None:
    """Return the service that works on the same database, if one does, with the key that it left for us."""
    running = _running(settings)
    if running is None:
        return None
    return replace(running, key=_options().key or local_token(settings.data_dir))


class ClientOptions(NamedTuple):
    """The options of ``alarmcast admin`` before the command."""

    url: str | None = None
    key: str | None = None


_global_options: ContextVar[ClientOptions] = ContextVar("options", default=ClientOptions())  # noqa: B039 - a frozen tuple


def set_options(url: str | None, key: str | None) -> None:
    """Let the command that follows ask there, and with this key."""
    _global_options.set(ClientOptions(url, key))


def _options() -> ClientOptions:
    return _global_options.get()


@contextmanager
def _map_errors(address: str, silence: str) -> Iterator[None]:
    try:
        yield
    except Unreachable as failure:
        raise Unavailable(f"The service at {address} {silence}: {failure.__cause__!r}.") from None
    except AlarmcastError as error:
        raise InputRejected(str(error)) from None


def _running(settings: Settings) -> ServiceAddress | None:
    """Return where to find the service that works on the same database, if one does.

    On SQLite the holder of the lock has left it there; on PostgreSQL it is where the settings say, or nowhere.
    """
    if settings.database_url is None or settings.database_url.startswith("sqlite"):
        lock = WriterLock(settings.data_dir / "alarmcast.lock")
        try:
            lock.acquire().release()
        except DatabaseInUse as error:
            if error.url is None:
                raise
            return ServiceAddress(error.url, certificate=Path(error.certificate) if error.certificate else None)
        except OSError:
            return None  # whatever is wrong with the folder is said where it is opened
        return None
    scheme = "https" if settings.tls_cert else "http"
    running = ServiceAddress(f"{scheme}://{settings.host}:{settings.port}", certificate=settings.tls_cert)
    try:
        with running.client(httpx.Timeout(5)) as client:
            client.health.live()
    except AlarmcastError:
        return None
    return running


def _trust_only(certificate: Path) -> ssl.SSLContext:
    """Trust exactly one certificate: its file is known, so its name need not match."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cafile=certificate)
    except OSError as error:
        raise InputRejected(f"Cannot read {certificate}, the service's certificate: {error}.") from None
    return context
