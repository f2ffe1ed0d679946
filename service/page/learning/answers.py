"""Answers of operators, counted per machine and code."""

from collections.abc import Sequence

from nicegui import html

from service.page.components.blocks import empty_message, table
from service.page.texts import text
from wire.rest.answers import AnswerCounts

_SHOWN_ROWS = 60


def draw_answers(counts: Sequence[AnswerCounts]) -> None:
    """Draw the counts, most answers first."""
    html.h3(text("learning.answers.title"))
    html.p(text("learning.answers.help")).classes("small quiet")
    if not counts:
        empty_message(text("learning.answers.none"))
        return
    ordered = sorted(counts, key=lambda one: -(one.handled + one.useful + one.wrong))
    head = (
        text("learning.answers.machine"),
        text("learning.answers.alarm"),
        text("common.answer.handled"),
        text("common.answer.useful"),
        text("common.answer.wrong"),
    )
    rows = [
        (f"{one.site}/{one.machine}", f"{one.code} {one.text}", one.handled, one.useful, one.wrong)
        for one in ordered[:_SHOWN_ROWS]
    ]
    table(head, rows, numbers=range(2, len(head)), label=text("learning.answers.title"))
    html.a(text("learning.answers.csv"), href="/v1/answers.csv", download="").classes("ac-button ac-small")
