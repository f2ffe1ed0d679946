"""The alarm response and the operator's answer in the table of notifications."""

from collections.abc import Awaitable, Callable

from service.page.components.data_table import Cell, actions_cell
from service.page.layout import PageContext, show_api_errors
from service.page.texts import text
from wire.enums import Answer, Role
from wire.rest.catalogue import AlarmResponse
from wire.rest.notifications import NotificationView

_SIGN = "✓ "


def response_cell(response: AlarmResponse) -> Cell:
    """Return a cell with the corrective action, linked to its procedure."""
    cell = {"text": response.action or response.cause or (response.link and text("notifications.procedure"))}
    if not cell["text"]:
        return None
    if response.link and response.link.startswith(("http://", "https://")):
        cell["href"] = response.link
    return cell | ({"more": response.consequence} if response.consequence else {})


def answer_cell(one: NotificationView, context: PageContext) -> Cell:
    """Return a cell with the answer, and for operators with a button for each answer."""
    given = one.answer
    said = None if given is None else text("notifications.answered", actor=given.actor)
    if given is not None and given.note:
        said = f"{said}: {given.note}"
    if not context.may(Role.OPERATOR):
        return None if given is None else {"text": text(f"common.answer.{given.answer}"), "more": said}
    buttons = [
        (
            answer.value,
            (_SIGN if given and given.answer is answer else "") + text(f"common.answer.{answer}"),
            text("notifications.answer_label", answer=text(f"common.answer.{answer}"), alarm=one.text),
        )
        for answer in Answer
    ]
    return actions_cell(*buttons) | ({"more": said} if said else {})


def answering(context: PageContext) -> Callable[[str, str], Awaitable[None]]:
    """Return what a button does: store the answer."""

    async def answer(name: str, key: str) -> None:
        with show_api_errors():
            await context.client.answers.answer_notification(int(key), Answer(name))

    return answer
