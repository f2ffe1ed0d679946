"""When certificates end, told before they do: ours from their files, the broker's from its last greeting."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from service.errors import InputRejected
from service.settings import Settings

SOON = timedelta(days=30)
_IN_WORDS = {
    "api": "The API's certificate",
    "client": "Our certificate at the broker",
    "broker_ca": "The authority of the broker's certificate",
    "broker": "The broker's certificate",
}


@dataclass
class CertificateExpiry:
    """Looks at files again only when they have changed."""

    settings: Settings
    broker: Callable[[], datetime | None]
    now: Callable[[], datetime]
    _read: dict[Path, tuple[int, datetime | None]] = field(default_factory=dict)

    def warnings(self) -> dict[str, str]:
        """Say which certificates end within a month, or cannot be read."""
        now = self.now()
        told = [
            f"{_IN_WORDS[use]} {'ended' if end <= now else 'ends'} on {end:%Y-%m-%d}"
            for use, end in self.ends().items()
            if end - now < SOON
        ]
        if not told:
            return {}
        return {"certificates": f"{'; '.join(told)}. Renew in time: alarmcast admin tls-init FOLDER --renew"}

    def ends(self) -> dict[str, datetime]:
        """Return when each certificate ends that is in use, by what it is for."""
        settings = self.settings
        files = {
            "api": settings.tls_cert,
            "client": settings.broker_tls_cert,
            "broker_ca": settings.broker_tls_ca if settings.broker_tls else None,
        }
        found = {use: None if path is None else self._end(path) for use, path in files.items()}
        return {use: end for use, end in (found | {"broker": self.broker()}).items() if end is not None}

    def _end(self, path: Path) -> datetime | None:
        from service.broker_access.certificates import expires_at  # noqa: PLC0415 - few have certificates to read

        try:
            changed = path.stat().st_mtime_ns
            if path not in self._read or self._read[path][0] != changed:
                self._read[path] = (changed, expires_at(path))
        except (OSError, InputRejected):
            return None  # whoever needs the file complains about it
        return self._read[path][1]
