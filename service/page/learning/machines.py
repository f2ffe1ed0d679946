"""Every machine and how far it is, with what can be done about it."""

from collections.abc import Callable

from nicegui import html

from service.page.components.blocks import Cell, empty_state, table, timestamp
from service.page.learning.actions import Deeds
from wire.enums import MachineState
from wire.rest.machines import MachineView

_SIGNS = {
    MachineState.REGISTERED: ("○", "quiet", "nothing heard of it yet"),
    MachineState.COLLECTING: ("◔", "quiet", "heard, but not yet for long enough"),
    MachineState.LEARNING: ("◕", "quiet", "a job is at it"),
    MachineState.LIVE: ("●", "ac-good", "the model knows it"),
    MachineState.FAILED: ("✕", "ac-bad-text", "the fleet's model speaks for it"),
    MachineState.RETIRED: ("✓", "quiet", "let go"),
}


def draw_machines(machines: list[MachineView], deeds: Deeds | None) -> None:
    """Draw the table, with deeds for those who may."""
    if not machines:
        empty_state(
            "No machines yet",
            "Enrol the first one in the form above, with its past if there is a log; or see a whole plant first:"
            if deeds
            else "An administrator has to enrol the first one.",
            code="scripts/demo" if deeds else None,
        )
        return
    table(
        ("Machine", "Name", "State", "Learned", "Said", ""),
        [_row(one, deeds) for one in machines],
        label="Machines",
    )


def _row(one: MachineView, deeds: Deeds | None) -> tuple[Cell, ...]:
    key = f"{one.site}/{one.machine}"

    def state() -> None:
        sign, tone, meaning = _SIGNS[one.state]
        with html.span(title=meaning).classes(f"ac-nowrap {tone}"):
            html.span(sign).props('aria-hidden="true"')
            html.span(f" {one.state.value}")

    def do() -> None:
        if deeds is None:
            return
        with html.div().classes("ac-buttons ac-nowrap"):
            if one.state is MachineState.LIVE:
                _button("Learn again", f"Learn {key} again", lambda: deeds.ask_refresh(key))
            _button("Retire", f"Retire {key}", lambda: deeds.ask_retire(key))

    return (
        lambda: html.a(key, href=f"/machines/{key}").classes("ac-nowrap"),
        lambda: html.span(one.name).classes("ac-nowrap"),
        state,
        lambda: timestamp(one.learned_at, one.time_zone),
        lambda: html.div(one.reason or "").classes("ac-prose"),
        do,
    )


def _button(text: str, label: str, deed: Callable[[], None]) -> None:
    html.button(text, type="button").classes("ac-button ac-small").props(f'aria-label="{label}"').on("click", deed)
