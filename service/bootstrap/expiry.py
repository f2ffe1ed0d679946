"""When certificates end, told before they do: ours from their files, the broker's from its last greeting."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from service.errors import InputRejected
from service.settings import Settings
from service.store.certificates import ends_at

SOON = timedelta(days=30)


@dataclass
class Expiry:
    """Looks at files again only when they have changed."""

    settings: Settings
    broker: Callable[[], datetime | None]
    now: Callable[[], datetime]
    _read: dict[Path, tuple[int, datetime | None]] = field(default_factory=dict)

    def warnings(self) -> dict[str, str]:
        """Say which certificates end within a month, or cannot be read."""
        now = self.now()
        told = [
            f"{what} {'ended' if end <= now else 'ends'} on {end:%Y-%m-%d}"
            for what, end in self._ends()
            if end - now < SOON
        ]
        if not told:
            return {}
        return {"certificates": f"{'; '.join(told)}. Renew in time: alarmcast admin tls-init FOLDER --renew"}

    def _ends(self) -> Iterator[tuple[str, datetime]]:
        settings = self.settings
        files = {
            "The API's certificate": settings.tls_cert,
            "Our certificate at the broker": settings.broker_tls_cert,
            "The authority of the broker's certificate": settings.broker_tls_ca if settings.broker_tls else None,
        }
        for what, path in files.items():
            end = None if path is None else self._end(path)
            if end is not None:
                yield what, end
        end = self.broker()
        if end is not None:
            yield "The broker's certificate", end

    def _end(self, path: Path) -> datetime | None:
        try:
            changed = path.stat().st_mtime_ns
            if path not in self._read or self._read[path][0] != changed:
                self._read[path] = (changed, ends_at(path))
        except (OSError, InputRejected):
            return None  # whoever needs the file complains about it
        return self._read[path][1]
