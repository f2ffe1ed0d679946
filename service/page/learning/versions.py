"""The table of model versions, with promotion and rollback."""

from collections.abc import Awaitable, Callable

from nicegui import html

from service.page.components.blocks import Cell, empty_state, table, timestamp
from service.page.layout import show_api_errors
from service.page.learning.actions import LearningActions
from service.page.learning.state import LearningState
from service.page.texts import text
from wire.enums import VersionStatus
from wire.rest.models import ModelView

_SHOWN = 40  # newest first; all versions are available over REST


def draw_versions(state: LearningState, actions: LearningActions | None) -> None:
    """Draw the active version and the table; ``actions`` is None for users without the permission."""
    if not state.models:
        empty_state(text("learning.versions.none"), text("learning.versions.none_help"))
        return
    with html.div().classes("ac-buttons"):
        _draw_active(state.champion, actions)
    head = (
        text("learning.versions.version"),
        text("learning.versions.status"),
        text("learning.versions.parent"),
        text("learning.versions.created"),
        text("learning.versions.machines"),
        text("learning.versions.results"),
        "",
    )
    rows = [_row(one, state, actions) for one in state.models[:_SHOWN]]
    table(head, rows, numbers=(4,), label=text("learning.versions.title"))


def _draw_active(champion: ModelView | None, actions: LearningActions | None) -> None:
    if champion is None:
        html.span(text("learning.versions.no_active")).classes("quiet")
    elif champion.parent is None:
        html.span(text("learning.versions.first", version=champion.version)).classes("quiet")
    else:
        if actions is not None:
            button = html.button(text("learning.roll_back.open", version=champion.parent), type="button")
            button.classes("ac-button").on("click", lambda: actions.ask_roll_back(champion))
        line = text("learning.versions.based_on", version=champion.version, parent=champion.parent)
        html.span(line).classes("quiet")


def _row(one: ModelView, state: LearningState, actions: LearningActions | None) -> tuple[Cell, ...]:
    async def ask() -> None:
        if actions is None:
            return
        with show_api_errors():
            actions.ask_promote(one, state.champion, await state.client.models.get(one.version))

    return (
        lambda: html.strong(one.version),
        lambda: _status(one.status),
        one.parent,
        lambda: timestamp(one.created_at, state.zone),
        lambda: html.span(str(len(one.machines)), title=", ".join(one.machines)),
        lambda: html.div(one.summary).classes("ac-prose"),
        lambda: _promote(one, ask) if actions else None,
    )


def _status(status: VersionStatus) -> None:
    sign, tone, name = {
        VersionStatus.CHAMPION: ("★", "ac-good", text("learning.status.champion")),
        VersionStatus.PROMOTED: ("●", "", text("learning.status.promoted")),
        VersionStatus.REJECTED: ("✕", "ac-bad-word", text("learning.status.rejected")),
    }[status]
    with html.span().classes(f"ac-nowrap {tone}"):
        html.span(sign).props('aria-hidden="true"')
        html.span(f" {name}")


def _promote(one: ModelView, ask: Callable[[], Awaitable[None]]) -> None:
    if one.status is VersionStatus.CHAMPION:
        return
    if one.pruned:
        html.span(text("learning.versions.pruned"), title=text("learning.versions.pruned_help")).classes(
            "quiet small"
        )
        return
    label = {"aria-label": text("learning.promote.label", version=one.version)}
    button = html.button(text("learning.promote.open"), type="button", **label)
    button.classes("ac-button ac-small ac-nowrap").on("click", ask)
