"""One item of the quarantine in full: its bytes as text or hex, to be copied, corrected and replayed."""

from base64 import b64decode
from collections.abc import Awaitable, Callable
from json import dumps

from nicegui import html
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from service.page.components.blocks import timestamp
from service.page.texts import text
from wire.rest.quarantine import QuarantineItemDetail

_SHOWN_BYTES = 4096
_BYTES_PER_LINE = 16
# Without HTTPS a browser has no clipboard for a page; execCommand still works.
_COPY = """async (event) => {
    const body = event.target.closest(".ac-item").querySelector("pre");
    const before = event.target.textContent;
    try {
        await navigator.clipboard.writeText(body.textContent);
    } catch {
        getSelection().selectAllChildren(body);
        document.execCommand("copy");
    }
    event.target.textContent = %s;
    setTimeout(() => (event.target.textContent = before), 1500);
}"""
_EMIT_BODY = """(event) => {
    event.preventDefault();
    emit(event.target.elements.body.value);
}"""


class QuarantineItem:
    """Shows one item; ``replay(item, corrected body)`` is called to replay it."""

    def __init__(self, replay: Callable[[int, str | None], Awaitable[None]], zone: str) -> None:
        self._replay, self._zone = replay, zone
        self._place: Element = html.div()

    def close(self) -> None:
        """Show no item."""
        self._place.clear()

    def show(self, item: QuarantineItemDetail) -> None:
        """Show an item."""
        source = text("health.item.source", topic=item.topic, size=item.size, sha256=item.sha256[:12])
        copy = _COPY % dumps(text("health.item.copied"))
        self._place.clear()
        with self._place, html.article().classes("ac-item"):
            with html.header().classes("ac-tools"):
                html.h3(text("health.item.title", item=item.id))
                with html.span().classes("quiet small"):
                    html.span(text("health.item.received"))
                    timestamp(item.received_at, self._zone)
                    html.span(source)
            html.p(text("health.item.reason", reason=item.reason, detail=item.detail))
            html.pre(item.text if item.text is not None else hex_dump(b64decode(item.base64))).props("tabindex=0")
            with html.div().classes("ac-tools"):
                html.button(text("health.item.copy"), type="button").classes("ac-button").on(
                    "click", js_handler=copy
                )
                replay = html.button(text("health.item.replay"), type="button").classes("ac-button")
                replay.on("click", lambda: self._replay(item.id, None))
            if item.text is not None:
                self._correction(item)

    def _correction(self, item: QuarantineItemDetail) -> None:
        async def send(event: GenericEventArguments) -> None:
            await self._replay(item.id, str(event.args))

        with html.details().classes("ac-details"):
            html.summary(text("health.item.correct"))
            with html.form().classes("ac-form").on("submit", send, js_handler=_EMIT_BODY):
                with html.label().classes("ac-entry ac-wide"):
                    html.span(text("health.item.body"))
                    html.textarea(item.text, name="body", rows=6, spellcheck="false").classes("ac-field")
                button = html.button(text("health.item.replay_corrected"), type="submit")
                button.classes("ac-button ac-primary")


def hex_dump(body: bytes) -> str:
    """Return bytes as lines of offset, hex and ASCII."""
    lines = []
    for offset in range(0, min(len(body), _SHOWN_BYTES), _BYTES_PER_LINE):
        part = body[offset : offset + _BYTES_PER_LINE]
        ascii_text = "".join(chr(one) if 32 <= one < 127 else "." for one in part)  # noqa: PLR2004 - printable
        lines.append(f"{offset:06x}  {part.hex(' '):<47}  {ascii_text}")
    if len(body) > _SHOWN_BYTES:
        lines.append(text("health.item.more_bytes", count=len(body) - _SHOWN_BYTES))
    return "\n".join(lines)
