"""One item of the quarantine, whole: its bytes as text or hex, to be copied, corrected and replayed."""

from base64 import b64decode
from collections.abc import Awaitable, Callable

from nicegui import html
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from service.page.components.blocks import timestamp
from wire.rest.quarantine import QuarantineItemDetail

_SHOWN_BYTES = 4096
_A_LINE = 16
# Where a page is not served over HTTPS, browsers have no clipboard for it; the old way still works.
_COPY = """async (event) => {
    const body = event.target.closest(".ac-item").querySelector("pre");
    const before = event.target.textContent;
    try {
        await navigator.clipboard.writeText(body.textContent);
    } catch {
        getSelection().selectAllChildren(body);
        document.execCommand("copy");
    }
    event.target.textContent = "Copied";
    setTimeout(() => (event.target.textContent = before), 1500);
}"""
_CORRECTED = """(event) => {
    event.preventDefault();
    emit(event.target.elements.body.value);
}"""


class Item:
    """Shows one item; ``replay(number, corrected body)`` gives it another chance."""

    def __init__(self, replay: Callable[[int, str | None], Awaitable[None]], zone: str) -> None:
        self._replay, self._zone = replay, zone
        self._place: Element = html.div()

    def close(self) -> None:
        """Show none."""
        self._place.clear()

    def show(self, item: QuarantineItemDetail) -> None:
        """Show this one."""
        self._place.clear()
        with self._place, html.article().classes("ac-item"):
            with html.header().classes("ac-tools"):
                html.h3(f"Item {item.id}")
                with html.span().classes("quiet small"):
                    html.span("received ")
                    timestamp(item.received_at, self._zone)
                    html.span(f" on {item.topic}, {item.size:,} bytes, sha256 {item.sha256[:12]}…")
            html.p(f"Refused as {item.reason}: {item.detail}")
            html.pre(item.text if item.text is not None else hexed(b64decode(item.base64))).props("tabindex=0")
            with html.div().classes("ac-tools"):
                html.button("Copy", type="button").classes("ac-button").on("click", js_handler=_COPY)
                again = html.button("Replay as it is", type="button").classes("ac-button")
                again.on("click", lambda: self._replay(item.id, None))
            if item.text is not None:
                self._correction(item)

    def _correction(self, item: QuarantineItemDetail) -> None:
        async def send(event: GenericEventArguments) -> None:
            await self._replay(item.id, str(event.args))

        with html.details().classes("ac-details"):
            html.summary("Correct and replay")
            with html.form().classes("ac-form").on("submit", send, js_handler=_CORRECTED):
                with html.label().classes("ac-entry ac-wide"):
                    html.span("The body to judge instead")
                    html.textarea(item.text, name="body", rows=6, spellcheck="false").classes("ac-field")
                html.button("Replay this", type="submit").classes("ac-button ac-primary")


def hexed(body: bytes) -> str:
    """Return bytes as people read them who look for what went wrong: place, hex, and what is ASCII."""
    lines = []
    for place in range(0, min(len(body), _SHOWN_BYTES), _A_LINE):
        piece = body[place : place + _A_LINE]
        signs = "".join(chr(one) if 32 <= one < 127 else "." for one in piece)  # noqa: PLR2004 - ASCII's ends
        lines.append(f"{place:06x}  {piece.hex(' '):<47}  {signs}")
    if len(body) > _SHOWN_BYTES:
        lines.append(f"… and {len(body) - _SHOWN_BYTES:,} bytes more")
    return "\n".join(lines)
