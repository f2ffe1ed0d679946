"""A question that wants a reason before something is done."""

from nicegui import html, ui
from nicegui.events import GenericEventArguments

_TYPED = """(event) => {
    event.preventDefault();
    emit(new FormData(event.target).get("reason"));
}"""


async def ask_why(question: str, deed: str) -> str | None:
    """Ask, and return the reason, or None if nothing shall be done."""
    with (
        ui.dialog() as dialog,
        html.div(role="alertdialog", **{"aria-label": question}).classes("ac-panel ac-dialog"),
    ):
        html.h2(question)

        def typed(event: GenericEventArguments) -> None:
            dialog.submit(str(event.args).strip() or None)

        with html.form().classes("ac-form").on("submit", typed, js_handler=_TYPED):
            with html.label().classes("ac-entry ac-wide"):
                html.span("Why? It is kept in the book of changes.")
                html.input_(name="reason", required=True, maxlength=1000, autofocus=True).classes("ac-field")
            html.button(deed, type="submit").classes("ac-button ac-primary")
            html.button("Leave it", type="button").classes("ac-button").on("click", lambda: dialog.submit(None))
    answer = await dialog
    dialog.delete()
    return None if answer is None else str(answer)
