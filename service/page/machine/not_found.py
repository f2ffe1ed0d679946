"""The page for a machine that does not exist or that the user may not see."""

from nicegui import html

from service.page.components.blocks import empty_state
from service.page.layout import PageContext, layout
from service.page.texts import text
from wire.enums import Role


def not_found(context: PageContext, machine: str) -> None:
    """Draw the page; an admin gets a link to enrol a machine."""
    with layout(context, text("machine.not_found"), path=""):
        empty_state(text("machine.not_found.title"), text("machine.not_found.help", machine=machine))
        with html.div().classes("ac-tools ac-middle"):
            html.a(text("common.go_to_fleet"), href="/").classes("ac-button")
            if context.may(Role.ADMIN):
                html.a(text("machine.not_found.enrol"), href="/learning").classes("ac-button ac-primary")
