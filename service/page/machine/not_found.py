"""The page in place of one about a machine that does not exist, or that the visitor may not see."""

from nicegui import html

from service.page.components.blocks import empty_state
from service.page.layout import PageContext, layout
from wire.enums import Role


def missing(told: PageContext, machine: str) -> None:
    """Draw a page in place of one about a machine that is not known."""
    with layout(told, "Machine not found", path=""):
        empty_state(
            "Machine not found, or you do not have access to it.",
            f"Check the address: {machine} is written site/machine, as on the fleet page.",
        )
        with html.div().classes("ac-tools ac-middle"):
            html.a("All machines", href="/").classes("ac-button")
            if told.may(Role.ADMIN):
                html.a("Enrol a machine", href="/learning").classes("ac-button ac-main-deed")
