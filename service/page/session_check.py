"""Closes a page whose user may no longer see it: in the browser if it responds, and on the server in any case."""

from contextlib import suppress
from dataclasses import dataclass

from nicegui import Client, background_tasks, ui

from alarmcast import AlarmcastError, AsyncClient, NotSignedIn, TooMany
from wire.rest.auth import Me

CHECK_INTERVAL_S = 5.0  # as for streams
_MAX_RATE_LIMITED = 6  # checks in a row
_NAVIGATE_TIMEOUT_S = 1.0
_SIGN_IN = "location.assign('/sign-in?next=' + encodeURIComponent(location.pathname + location.search))"
_RELOAD = "location.reload()"


@dataclass
class SessionMonitor:
    """Checks that a user is still signed in, with the role and sites that their page was drawn for.

    Updates of a page use the token of shared data, so nothing else would close it.
    """

    client: AsyncClient
    me: Me
    rate_limited: int = 0

    async def check(self) -> None:
        """Close the current page if the session has ended or its rights have changed."""
        try:
            now = await self.client.session.me()
        except NotSignedIn:
            redirect_to_login()
        except TooMany:
            self.rate_limited += 1
            if self.rate_limited >= _MAX_RATE_LIMITED:  # else endless requests would keep a page open
                _close(ui.context.client, _RELOAD)
        except AlarmcastError:
            pass  # the header shows that updates no longer arrive
        else:
            self.rate_limited = 0
            if now != self.me:
                _close(ui.context.client, _RELOAD)


def redirect_to_login() -> None:
    """Close the current page and open the sign-in page."""
    _close(ui.context.client, _SIGN_IN)


def _close(page: Client, navigation: str) -> None:
    background_tasks.create(_navigate_and_delete(page, navigation), name=f"close page {page.id}")


async def _navigate_and_delete(page: Client, navigation: str) -> None:
    """Ask the browser to leave, then delete the page so that it gets no updates and sends no events."""
    with suppress(TimeoutError):
        await page.run_javascript(navigation, timeout=_NAVIGATE_TIMEOUT_S)
    await page.connected()  # NiceGUI deletes a page that has left, unless it comes back
    if not page.is_deleted:
        page.delete()
