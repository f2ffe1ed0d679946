"""Who is told of likely alarms: webhooks to be added, tested and removed, and what became of the last notices."""

from nicegui import html, ui

from service.page.components.blocks import panel, percent
from service.page.components.data_table import (
    Cell,
    Column,
    DataTable,
    Row,
    actions_cell,
    alarm,
    link,
    moment,
    tag_cell,
)
from service.page.components.forms import Typed, choice, entry, form
from service.page.components.refreshable import Refreshable
from service.page.health.asking import ask_why
from service.page.layout import PageContext, show_api_errors
from wire.enums import DeliveryState, Role, Severity
from wire.rest.notifications import DeliveryView, NotificationView
from wire.rest.webhooks import NewWebhook, WebhookView

_NOBODY = "Nobody is told over HTTP yet; forecasts go out over MQTT."
_NOT_FOR_YOU = "Whom a webhook tells is for admins to see."
_RENEWED = 10.0  # seconds
_NEWEST = 50
_WEBHOOKS = [Column("address"), Column("told of"), Column("state"), Column("last delivery"), Column("")]
_NOTICES = [
    Column("machine"),
    Column("alarm"),
    Column("likely", number=True, hint="The probability when it became news."),
    Column("opened"),
    Column("state"),
    Column("told"),
]
_STATES = {
    DeliveryState.DELIVERED: ("✓", "ac-good"),
    DeliveryState.WAITING: ("◐", "ac-sev-medium"),
    DeliveryState.GIVEN_UP: ("✕", "ac-bad-word"),
}
_SEVERITIES = [(Severity.HIGH, "high"), (Severity.MEDIUM, "medium and high"), (Severity.LOW, "all")]
_COPY = """(event) => {
    const secret = event.target.parentElement.querySelector("code");
    getSelection().selectAllChildren(secret);
    document.execCommand("copy");
    event.target.textContent = "Copied";
}"""


class Notices:
    """Webhooks and the newest notices; where notices go is the admin's to say."""

    def __init__(self, told: PageContext) -> None:
        self._told, self._admin = told, told.may(Role.ADMIN)
        with panel("Webhooks", note="who is told over HTTP as soon as an alarm becomes likely"):
            self._no_webhooks = Refreshable(_calm)
            self._webhooks = DataTable(_WEBHOOKS, [], label="Webhooks", first=10, zone=told.zone)
            self._webhooks.on_action(self._on_webhook)
            self._made = html.div()
            if self._admin:
                self._form()
        with panel("Notices", note="likely alarms that were news, newest first", wide=True):
            self._no_notices = Refreshable(_calm)
            self._notices = DataTable(_NOTICES, [], label="Notices", first=8, zone=told.zone)
        ui.timer(_RENEWED, self.renew)

    async def renew(self) -> None:
        """Show them as they are now."""
        with show_api_errors():
            webhooks = await self._webhooks_now()
            page = await self._told.kept.get_or_fetch(
                "notices", lambda: self._told.client.notifications.page(limit=_NEWEST)
            )
            fleet = await self._told.kept.get_or_fetch("machines", self._told.client.machines.list)
            zones = {f"{one.site}/{one.machine}": one.time_zone for one in fleet.machines}
            nobody = "Nobody is told over HTTP yet; forecasts go out over MQTT."
            self._no_webhooks.show(
                "" if webhooks else nobody if self._admin else "Webhooks are an admin's to see."
            )
            self._webhooks.set_visibility(bool(webhooks))
            self._webhooks.show([_webhook(one, page.notifications) for one in webhooks])
            self._no_notices.show(
                "" if page.notifications else "No alarm has become likely enough to be news yet."
            )
            self._notices.set_visibility(bool(page.notifications))
            self._notices.show([_notice(one, zones) for one in page.notifications])

    async def _webhooks_now(self) -> list[WebhookView]:
        """Return what there is; an address may hold a token, so only admins may see it."""
        if not self._admin:
            return []
        return (await self._told.kept.get_or_fetch("webhooks", self._told.client.webhooks.list)).webhooks

    def _form(self) -> None:
        with html.details().classes("ac-details"):
            html.summary("Add a webhook")
            with form(self._add, deed="Add it"):
                url = "https://andon.example/alarms"
                entry("url", "Address", kind="url", required=True, maxlength=2000, placeholder=url)
                choice("severity", "Alarms of severity", _SEVERITIES, Severity.HIGH)
                entry("where", "Of one site or site/machine only", maxlength=130, placeholder="padova/filler-1")
                entry("reason", "Why", maxlength=1000)

    async def _add(self, typed: Typed) -> None:
        site, _, machine = typed["where"].partition("/")
        made = await self._told.client.webhooks.add(
            typed["url"],
            severity=Severity(typed["severity"]),
            site=site or None,
            machine=machine or None,
            reason=typed["reason"] or None,
        )
        self._made.clear()
        with self._made:
            _secret(made)
        await self._changed()

    async def _on_webhook(self, deed: str, key: str) -> None:
        number = int(key)
        with show_api_errors():
            match deed:
                case "test":
                    await self._test(number)
                    return
                case "remove":
                    reason = await ask_why(
                        "Remove this webhook? Its secret and deliveries are forgotten.", "Remove it"
                    )
                    if reason:
                        await self._told.client.webhooks.remove(number, reason=reason)
                case _:
                    on = deed == "on"
                    reason = await ask_why("Switch it on?" if on else "Switch it off?", "Switch it")
                    if reason:
                        await self._told.client.webhooks.switch(number, enabled=on, reason=reason)
            await self._changed()

    async def _test(self, number: int) -> None:
        answer = await self._told.client.webhooks.test(number)
        said = f"{answer.status or 'no answer'}{f': {answer.answer[:200]}' if answer.answer else ''}".rstrip(".")
        how = f"after {answer.seconds:.2f} s"
        if answer.delivered:
            ui.notify(f"The test arrived {how}; the receiver said {said}.", type="positive")
        else:
            ui.notify(f"The test was not taken {how}; {said}.", type="warning", multi_line=True, timeout=10_000)

    async def _changed(self) -> None:
        self._told.kept.forget()
        await self.renew()


def _secret(made: NewWebhook) -> None:
    with html.div(role="status").classes("ac-warn ac-secret"):
        html.strong("Its secret, shown this once: ")
        html.code(made.secret)
        html.button("Copy", type="button").classes("ac-button ac-small").on("click", js_handler=_COPY)
        html.p("Every delivery is signed with it; give it to the receiver, then try the webhook with Test.")


def _webhook(one: WebhookView, notices: list[NotificationView]) -> Row:
    where = f"{one.site}/{one.machine}" if one.machine else one.site or "all sites"
    severity = dict(_SEVERITIES)[one.severity]
    state = tag_cell("on", "●", "ac-good") if one.enabled else tag_cell("off", "✕", "ac-bad-word", title=one.error)
    last = next((told for notice in notices for told in notice.deliveries if told.webhook == one.id), None)
    other = ("off", "Switch off", f"Switch off webhook {one.id}")
    if not one.enabled:
        other = ("on", "Switch on", f"Switch on webhook {one.id}")
    buttons = actions_cell(
        ("test", "Test", f"Test webhook {one.id}"),
        other,
        ("remove", "Remove", f"Remove webhook {one.id}"),
    )
    trouble: Cell = state | ({"more": one.error} if one.error else {})
    return Row(str(one.id), [one.url, {"text": severity, "more": where}, trouble, _delivery(last), buttons])


def _delivery(last: DeliveryView | None) -> Cell:
    if last is None:
        return "none yet"
    sign, tone = _STATES[last.state]
    tries = "1 attempt" if last.attempts == 1 else f"{last.attempts} attempts"
    answer = f", {last.status or last.answer or 'no answer'}" if last.attempts else ""
    return tag_cell(last.state.replace("_", " "), sign, tone, title=last.answer) | {"more": f"{tries}{answer}"}


def _notice(one: NotificationView, zones: dict[str, str]) -> Row:
    key = f"{one.site}/{one.machine}"
    if one.open:
        state = tag_cell("open", "◆", "ac-sev-medium", 1)
    else:
        state = tag_cell("closed", "✓", "quiet", 0) | {"more": _ENDS.get(one.ended or "", "")}
    if one.acknowledged is not None:
        state |= {"more": f"known to {one.acknowledged.actor}"}
    told = [f"{told.state.replace('_', ' ')} to {told.webhook}" for told in one.deliveries]
    return Row(
        str(one.id),
        [
            link(key, f"/machines/{key}"),
            alarm(one.code, one.text, one.severity),
            {"text": percent(one.probability), "sort": one.probability},
            moment(one.opened_at, zones.get(key)),
            state,
            ", ".join(told) or "over MQTT only",
        ],
    )


_ENDS = {
    "occurred": "the alarm came",
    "cleared": "no longer likely",
    "shelved": "shelved",
    "maintenance": "maintenance began",
    "expired": "not heard until its time was over",
    "withdrawn": "no longer forecast",
}


def _calm(sentence: str) -> None:
    if sentence:
        html.p(sentence).classes("ac-calm")
