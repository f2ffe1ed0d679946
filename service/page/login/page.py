"""Signing in, and taking a password of one's own."""

from typing import Any

from nicegui import html, ui

from service.page.layout import login_layout

_NAME = {"name": "name", "label": "Name", "type": "text", "autocomplete": "username"}
_PASSWORD = {"name": "password", "label": "Password", "type": "password", "autocomplete": "current-password"}
_OLD = {"name": "old", "label": "Present password", "type": "password", "autocomplete": "current-password"}
_NEW = {"name": "new", "label": "New password", "type": "password", "autocomplete": "new-password"}
_AGAIN = {"name": "again", "label": "New password, again", "type": "password", "autocomplete": "new-password"}


class SecretForm(ui.element, component="form.js"):
    """A form that the browser sends to the API by itself."""

    def __init__(self, **props: Any) -> None:
        super().__init__()
        self._props.update(props)


def sign_in(wanted: str) -> None:
    """Draw the form that leads to the page that was wanted."""
    with login_layout("Sign in"):
        SecretForm(
            title="Sign in",
            note="The first admin's password was printed when the service was first started; "
            "others get theirs from an admin.",
            deed="Sign in",
            fields=[_NAME, _PASSWORD],
            address="/v1/session",
            next=own_path(wanted),
        )


def password(name: str, *, must: bool) -> None:
    """Draw the form with which somebody takes another password."""
    why = "The one you have was told once; take one of your own before you go on." if must else ""
    with login_layout("Another password"):
        SecretForm(
            title=f"Another password for {name}",
            note=f"{why} At least 12 characters: a few unrelated words are good.".strip(),
            deed="Take it",
            fields=[_OLD, _NEW, _AGAIN],
            address="/v1/me/password",
            next="/",
            repeat=["new", "again"],
        )
        if not must:
            html.a("Leave it as it is", href="/")


def own_path(wanted: str) -> str:
    """Return a path of this service: whatever else was asked for, nobody is led to another site."""
    is_own = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if is_own else "/"
