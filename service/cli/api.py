"""The API, wherever it is: in the service that holds the database, or in this process if nobody does."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import typer

from alarmcast import AlarmcastError, Client, InProcess, Unreachable
from service.bootstrap.service import Service
from service.bootstrap.stores import open_stores
from service.errors import DatabaseInUse, InputRejected, Unavailable
from service.settings import Settings
from service.store.lock import WriterLock

_PATIENCE = httpx.Timeout(60.0, read=600.0)  # a year of history takes a while to be stored


@dataclass(frozen=True)
class Running:
    """A service that runs: where, and the certificate that it shows there if it speaks TLS."""

    address: str
    certificate: Path | None = None

    def client(self, timeout: httpx.Timeout) -> Client:
        """Return a client that talks to this very service, whatever name its certificate has."""
        transport = None
        if self.certificate is not None:
            transport = httpx.HTTPTransport(verify=_knowing(self.certificate))
        return Client(self.address, timeout=timeout, transport=transport)


@contextmanager
def api(settings: Settings) -> Iterator[Client]:
    """Yield a client of the running service, or of the same app in this process if there is none.

    What goes wrong becomes the error that it describes.
    """
    running = _running(settings)
    if running is not None:
        with _told(running.address, "does not answer"), running.client(_PATIENCE) as client:
            yield client
        return
    is_new = not settings.data_dir.exists()
    with open_stores(settings) as stores:
        if is_new:
            typer.echo(f"No service runs here; {settings.data_dir} is new and empty.", err=True)
        here = InProcess(Service(settings, stores).app)
        with _told("http://here", "does not answer"), Client("http://here", transport=here) as client:
            yield client


@contextmanager
def running_api(settings: Settings) -> Iterator[Client]:
    """Yield a client of the running service, or say that there must be one."""
    running = _running(settings)
    if running is None:
        raise Unavailable("No service is running, and only a running one learns. Start it: alarmcast serve")
    with _told(running.address, "no longer answers"), running.client(_PATIENCE) as client:
        yield client


@contextmanager
def _told(address: str, silence: str) -> Iterator[None]:
    try:
        yield
    except Unreachable as failure:
        raise Unavailable(f"The service at {address} {silence}: {failure.__cause__!r}.") from None
    except AlarmcastError as error:
        raise InputRejected(str(error)) from None


def _running(settings: Settings) -> Running | None:
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
            return Running(error.url, Path(error.certificate) if error.certificate else None)
        except OSError:
            return None  # whatever is wrong with the folder is said where it is opened
        return None
    scheme = "https" if settings.tls_cert else "http"
    running = Running(f"{scheme}://{settings.host}:{settings.port}", settings.tls_cert)
    try:
        with running.client(httpx.Timeout(5)) as client:
            client.health.live()
    except AlarmcastError:
        return None
    return running


def _knowing(certificate: Path) -> ssl.SSLContext:
    """Trust exactly one certificate: the service has told us its file, so no name need vouch for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cafile=certificate)
    except OSError as error:
        raise InputRejected(f"Cannot read {certificate}, the service's certificate: {error}.") from None
    return context
