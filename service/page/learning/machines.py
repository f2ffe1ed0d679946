"""The table of machines with their training state and actions."""

from collections.abc import Callable

from nicegui import html

from service.page.components.blocks import Cell, empty_state, table, timestamp
from service.page.learning.actions import LearningActions
from service.page.texts import text
from wire.enums import MachineState
from wire.rest.machines import MachineView


def draw_machines(machines: list[MachineView], actions: LearningActions | None) -> None:
    """Draw the table; ``actions`` is None for users without the permission."""
    if not machines:
        if actions:
            empty_state(text("learning.machines.none"), text("learning.machines.none_help"), code="scripts/demo")
        else:
            empty_state(text("learning.machines.none"), text("learning.machines.none_admin"))
        return
    head = (
        text("learning.machines.machine"),
        text("learning.machines.name"),
        text("learning.machines.state"),
        text("learning.machines.trained"),
        text("learning.machines.message"),
        "",
    )
    table(head, [_row(one, actions) for one in machines], label=text("learning.machines.title"))


def _row(one: MachineView, actions: LearningActions | None) -> tuple[Cell, ...]:
    key = f"{one.site}/{one.machine}"

    def draw_actions() -> None:
        if actions is None:
            return
        with html.div().classes("ac-buttons ac-nowrap"):
            if one.state is MachineState.LIVE:
                label = text("learning.machines.retrain_label", machine=key)
                _button(text("learning.machines.retrain"), label, lambda: actions.ask_retrain(key))
            label = text("learning.machines.retire_label", machine=key)
            _button(text("learning.machines.retire"), label, lambda: actions.ask_retire(key))

    return (
        lambda: html.a(key, href=f"/machines/{key}").classes("ac-nowrap"),
        lambda: html.span(one.name).classes("ac-nowrap"),
        lambda: _state(one.state),
        lambda: timestamp(one.learned_at, one.time_zone),
        lambda: html.div(one.reason or "").classes("ac-prose"),
        draw_actions,
    )


def _state(state: MachineState) -> None:
    styles = {MachineState.LIVE: ("●", "ac-good"), MachineState.FAILED: ("✕", "ac-bad-word")}
    signs = {MachineState.REGISTERED: "○", MachineState.COLLECTING: "◔", MachineState.LEARNING: "◕"}
    sign, tone = styles.get(state, (signs.get(state, "✓"), "quiet"))
    name, meaning = _state_texts(state)
    with html.span(title=meaning).classes(f"ac-nowrap {tone}"):
        html.span(sign).props('aria-hidden="true"')
        html.span(f" {name}")


def _state_texts(state: MachineState) -> tuple[str, str]:
    """Return the name of a state and what it means."""
    return {
        MachineState.REGISTERED: (text("learning.state.registered"), text("learning.state.registered_help")),
        MachineState.COLLECTING: (text("learning.state.collecting"), text("learning.state.collecting_help")),
        MachineState.LEARNING: (text("learning.state.learning"), text("learning.state.learning_help")),
        MachineState.LIVE: (text("learning.state.live"), text("learning.state.live_help")),
        MachineState.FAILED: (text("learning.state.failed"), text("learning.state.failed_help")),
        MachineState.RETIRED: (text("learning.state.retired"), text("learning.state.retired_help")),
    }[state]


def _button(title: str, label: str, action: Callable[[], None]) -> None:
    button = html.button(title, type="button", **{"aria-label": label}).classes("ac-button ac-small")
    button.on("click", action)
