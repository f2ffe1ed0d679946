"""The sign-in form and the form to change a password."""

from pathlib import Path
from typing import Any

from nicegui import ui

from service.page.layout import login_layout
from service.page.texts import text

_FORMAT = {"alarmcast-format": str(Path(__file__).parent.parent / "format")}


class PasswordForm(ui.element, component="form.js", esm=_FORMAT):
    """A form that the browser sends to the API itself."""

    def __init__(self, **props: Any) -> None:
        super().__init__()
        self._props.update(props)


def sign_in(wanted: str) -> None:
    """Draw the sign-in form; it leads to the wanted page."""
    name = {"name": "name", "label": text("login.name"), "type": "text", "autocomplete": "username"}
    with login_layout(text("login.sign_in")):
        PasswordForm(
            title=text("login.sign_in"),
            notes=[text("login.sign_in.note")],
            fields=[name, _password("password", text("login.password"), "current-password")],
            address="/v1/session",
            next=own_path(wanted),
        )


def change_password(name: str, *, required: bool) -> None:
    """Draw the form with which a user changes their password."""
    why = [text("login.change.required")] if required else []
    with login_layout(text("login.change")):
        PasswordForm(
            title=text("login.change"),
            notes=[text("login.change.user", name=name), *why, text("login.change.rule")],
            fields=[
                _password("old", text("login.current"), "current-password"),
                _password("new", text("login.new"), "new-password"),
                _password("again", text("login.confirm"), "new-password"),
            ],
            address="/v1/me/password",
            next="/",
            confirm=["new", "again"],
            cancel=None if required else "/",
        )


def _password(name: str, label: str, autocomplete: str) -> dict[str, str]:
    return {"name": name, "label": label, "type": "password", "autocomplete": autocomplete}


def own_path(wanted: str) -> str:
    """Return the wanted path if it is one of this service, else the start page."""
    is_own = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if is_own else "/"
