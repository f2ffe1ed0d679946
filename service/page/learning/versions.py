"""Every version: what it has learned, what became of it, and the way back."""

from collections.abc import Awaitable, Callable

from nicegui import html

from service.page.components.blocks import Cell, empty_state, table, timestamp
from service.page.layout import show_api_errors
from service.page.learning.actions import Deeds
from service.page.learning.state import LearningState
from wire.enums import VersionStatus
from wire.rest.models import ModelView

_SIGNS = {
    VersionStatus.CHAMPION: ("★", "ac-good", "serves"),
    VersionStatus.PROMOTED: ("●", "", "has served"),
    VersionStatus.REJECTED: ("✕", "ac-bad-text", "rejected by the gate"),
}
_MOST = 40  # the newest; all of them are over REST


def draw_versions(seen: LearningState, deeds: Deeds | None) -> None:
    """Draw the table and, above it, the way back for those who may go it."""
    if not seen.models:
        empty_state(
            "Nothing learned yet",
            "The first version comes once a machine was heard for about four weeks, or at once from its past.",
        )
        return
    champion = seen.champion
    with html.div().classes("ac-buttons"):
        if champion is None:
            html.span("No version serves.").classes("quiet")
        elif champion.parent is None:
            html.span(f"{champion.version} serves; there is no earlier version to go back to.").classes("quiet")
        else:
            if deeds is not None:
                back = html.button(f"Roll back to {champion.parent} …", type="button").classes("ac-button")
                back.on("click", lambda: deeds.ask_roll_back(champion))
            html.span(f"{champion.version} serves and was learned on top of {champion.parent}.").classes("quiet")
    table(
        ("Version", "Standing", "On top of", "Created", "Machines", "In its exams", ""),
        [_row(one, seen, deeds) for one in seen.models[:_MOST]],
        numbers=(4,),
        label="Versions",
    )


def _row(one: ModelView, seen: LearningState, deeds: Deeds | None) -> tuple[Cell, ...]:
    sign, tone, words = _SIGNS[one.status]

    def standing() -> None:
        with html.span().classes(f"ac-nowrap {tone}"):
            html.span(sign).props('aria-hidden="true"')
            html.span(f" {words}")

    async def ask() -> None:
        if deeds is None:
            return
        with show_api_errors():
            deeds.ask_promote(one, seen.champion, await seen.client.models.get(one.version))

    return (
        lambda: html.strong(one.version),
        standing,
        one.parent,
        lambda: timestamp(one.created_at, seen.zone),
        lambda: html.span(str(len(one.machines)), title=", ".join(one.machines)),
        lambda: html.div(one.summary).classes("ac-prose"),
        lambda: _promote(one, ask) if deeds else None,
    )


def _promote(one: ModelView, ask: Callable[[], Awaitable[None]]) -> None:
    if one.status is VersionStatus.CHAMPION:
        return
    if one.pruned:
        html.span("weights let go", title="Only the newest versions keep their weights.").classes("quiet small")
        return
    button = html.button("Promote …", type="button").classes("ac-button ac-small ac-nowrap")
    button.props(f'aria-label="Promote {one.version}"').on("click", ask)
