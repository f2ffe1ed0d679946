"""A machine that nobody has enrolled: what to do about it."""

from nicegui import html

from service.page.frame import Told, frame
from service.page.parts.blocks import teach


def missing(told: Told, machine: str) -> None:
    """Draw a page in place of one about a machine that is not known."""
    with frame(told, "No such machine", path=""):
        teach(
            f"There is no machine {machine}",
            "Look for a slip in its name: it is written site/machine, as on the fleet page. A machine that speaks "
            "without being enrolled is named there too.",
            "If it is new, enrol it; its agent may already run.",
        )
        with html.div().classes("ac-tools ac-middle"):
            html.a("All machines", href="/").classes("ac-button")
            html.a("Enrol a machine", href="/learning").classes("ac-button ac-main-deed")
