"""How a page ends whose visitor may not see it any more: in the browser if it listens, and here in any case."""

from contextlib import suppress
from dataclasses import dataclass

from nicegui import Client, background_tasks, ui

from alarmcast import AlarmcastError, AsyncClient, NotSignedIn, TooMany
from wire.rest.auth import Me

CHECK_INTERVAL_S = (
    5.0  # seconds between two looks at whether a visitor may still see what they see, as at a stream's reader
)
_MOST_UNANSWERED = 6  # looks in a row
_TO_GO = 1.0  # seconds that a browser has to go by itself
_TO_SIGN_IN = "location.assign('/sign-in?next=' + encodeURIComponent(location.pathname + location.search))"
_ANEW = "location.reload()"


@dataclass
class SessionMonitor:
    """Looks whether a visitor is still who they were when their page was drawn: signed in, in that role and sites.

    A page is told of changes with its room's key and not with the visitor's, so nothing else would end it.
    """

    client: AsyncClient
    me: Me
    unanswered: int = 0

    async def check(self) -> None:
        """End the page that asks unless they are."""
        try:
            now = await self.client.session.me()
        except NotSignedIn:
            redirect_to_login()
        except TooMany:
            self.unanswered += 1
            if self.unanswered >= _MOST_UNANSWERED:  # or whoever asks without end could never be put out
                _end(ui.context.client, _ANEW)
        except AlarmcastError:
            pass  # the bar says by itself that nothing is told any more
        else:
            self.unanswered = 0
            if now != self.me:
                _end(ui.context.client, _ANEW)


def redirect_to_login() -> None:
    """End the page that asks and lead its visitor to the form."""
    _end(ui.context.client, _TO_SIGN_IN)


def _end(page: Client, way: str) -> None:
    background_tasks.create(_ended(page, way), name=f"end of page {page.id}")


async def _ended(page: Client, way: str) -> None:
    """Ask the browser to go, and then tell it nothing more and listen to nothing that it says."""
    with suppress(TimeoutError):
        await page.run_javascript(way, timeout=_TO_GO)
    await page.connected()  # one that has gone is deleted by NiceGUI, unless it comes back
    if not page.is_deleted:
        page.delete()
