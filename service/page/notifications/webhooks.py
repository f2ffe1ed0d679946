"""The outgoing webhooks: listed, added, tested, enabled, disabled and removed by admins."""

from collections.abc import Sequence

from nicegui import ui

from service.page.components.actions import Action, ActionRunner, FormValues, OneTimeSecret
from service.page.components.blocks import add_button, panel
from service.page.components.confirm_dialog import Field
from service.page.components.data_table import Cell, Column, DataTable, Row, actions_cell, tag_cell
from service.page.layout import PageContext, show_api_errors
from service.page.notifications.deliveries import answer_text, state_cell
from service.page.notifications.policies import policy_fields, submitted_policy
from service.page.texts import text
from wire.enums import Role, Severity
from wire.rest.notifications import DeliveryView, NotificationView
from wire.rest.policies import NotificationPolicy
from wire.rest.webhooks import WebhookView

_EXAMPLE_URL = "https://andon.example/alarms"


class Webhooks:
    """The table of webhooks with its actions."""

    def __init__(self, context: PageContext, actions: ActionRunner) -> None:
        self._context, self._actions = context, actions
        self._is_admin = context.may(Role.ADMIN)
        self._webhooks: dict[str, WebhookView] = {}
        columns = [
            Column(text("notifications.webhooks.url")),
            Column(text("notifications.webhooks.filter")),
            Column(text("notifications.webhooks.state")),
            Column(text("notifications.webhooks.last")),
            Column(""),
        ]
        with panel(text("notifications.webhooks.title"), note=text("notifications.webhooks.note")):
            self._table = DataTable(
                columns, label=text("notifications.webhooks.title"), first=10, zone=context.zone
            )
            self._table.on_action(self._on_action)
            if self._is_admin:
                add_button(text("notifications.webhooks.add_open"), self._ask_add)

    def show(self, webhooks: Sequence[WebhookView], notifications: Sequence[NotificationView]) -> None:
        """Show these webhooks with their last delivery."""
        self._webhooks = {str(one.id): one for one in webhooks}
        empty, admins_only = text("notifications.webhooks.empty"), text("notifications.webhooks.admins_only")
        last: dict[int, DeliveryView] = {}
        for one in notifications:
            for delivery in one.deliveries:
                last.setdefault(delivery.webhook, delivery)
        rows = [_row(one, last.get(one.id)) for one in webhooks]
        self._table.show(rows, empty=empty if self._is_admin else admins_only)

    async def _on_action(self, action: str, key: str) -> None:
        webhook = self._webhooks.get(key)
        if webhook is None:
            return  # removed in the meantime
        match action:
            case "test":
                with show_api_errors():
                    await self._test(webhook.id)
            case "remove":
                self._ask_remove(webhook)
            case "policy":
                self._ask_policy(webhook)
            case _:
                self._ask_switch(webhook, enabled=action == "enable")

    def _ask_add(self) -> None:
        async def add(sent: FormValues) -> OneTimeSecret:
            site, _, machine = sent.values["site"].partition("/")
            created = await self._context.client.webhooks.add(
                sent.values["url"],
                severity=Severity(sent.values["severity"]),
                site=site or None,
                machine=machine or None,
                reason=sent.values["reason"] or None,
            )
            title = text("notifications.webhooks.secret_title", webhook=created.id)
            return OneTimeSecret(title, [text("notifications.webhooks.secret_help")], created.secret)

        self._actions.ask(
            Action(
                text("notifications.webhooks.add"),
                [text("notifications.webhooks.add_help")],
                text("notifications.webhooks.add"),
                add,
                fields=[
                    Field(
                        "url",
                        text("notifications.webhooks.url"),
                        kind="url",
                        more={"required": True, "maxlength": 2000, "placeholder": _EXAMPLE_URL},
                    ),
                    Field(
                        "severity",
                        text("notifications.webhooks.add_severity"),
                        kind="choice",
                        value=Severity.HIGH.value,
                        options=[{"value": one.value, "text": _severity(one)} for one in Severity],
                    ),
                    Field(
                        "site",
                        text("notifications.webhooks.add_scope"),
                        more={"maxlength": 130, "placeholder": "padova/filler-1"},
                    ),
                    Field("reason", text("notifications.webhooks.add_reason"), more={"maxlength": 1000}),
                ],
            )
        )

    def _ask_switch(self, webhook: WebhookView, *, enabled: bool) -> None:
        number, url = webhook.id, webhook.url
        if enabled:
            title = text("notifications.webhooks.enable_title", webhook=number)
            line = text("notifications.webhooks.enable_help", url=url)
            button = text("notifications.webhooks.enable")
            done = text("notifications.webhooks.enable_done", webhook=number)
        else:
            title = text("notifications.webhooks.disable_title", webhook=number)
            line = text("notifications.webhooks.disable_help", url=url)
            button = text("notifications.webhooks.disable")
            done = text("notifications.webhooks.disable_done", webhook=number)

        async def switch(sent: FormValues) -> str:
            await self._context.client.webhooks.switch(number, enabled=enabled, reason=sent.reason)
            return done

        self._actions.ask(Action(title, [line], button, switch, needs_reason=True))

    def _ask_policy(self, webhook: WebhookView) -> None:
        async def change(sent: FormValues) -> str:
            policy = submitted_policy(sent.values) if sent.values["policy"] == "own" else None
            changed = await self._context.client.webhooks.set_policy(webhook.id, policy, reason=sent.reason)
            return text("notifications.policies.done", rule=_policy_text(changed))

        options = [{"value": one, "text": text(f"notifications.webhooks.policy.{one}")} for one in ("site", "own")]
        chosen = "site" if webhook.policy is None else "own"
        choice = Field("policy", text("notifications.webhooks.policy"), "choice", value=chosen, options=options)
        self._actions.ask(
            Action(
                text("notifications.webhooks.policy_title", webhook=webhook.id),
                [text("notifications.webhooks.policy_help")],
                text("notifications.policies.change"),
                change,
                fields=[choice, *policy_fields(webhook.policy or NotificationPolicy())],
                needs_reason=True,
            )
        )

    def _ask_remove(self, webhook: WebhookView) -> None:
        async def remove(sent: FormValues) -> str:
            await self._context.client.webhooks.remove(webhook.id, reason=sent.reason)
            return text("notifications.webhooks.remove_done", webhook=webhook.id)

        self._actions.ask(
            Action(
                text("notifications.webhooks.remove_title", webhook=webhook.id),
                [text("notifications.webhooks.remove_help", url=webhook.url)],
                text("notifications.webhooks.remove"),
                remove,
                needs_reason=True,
            )
        )

    async def _test(self, webhook: int) -> None:
        result = await self._context.client.webhooks.test(webhook)
        parts = [str(one) for one in (result.status, result.answer[:200]) if one]
        answer = " ".join(parts).rstrip(".") or text("notifications.no_response")
        if result.delivered:
            message = text("notifications.webhooks.test_ok", seconds=result.seconds, answer=answer)
            ui.notify(message, type="positive")
        else:
            message = text("notifications.webhooks.test_failed", seconds=result.seconds, answer=answer)
            ui.notify(message, type="warning", multi_line=True, timeout=10_000)


def _severity(lowest: Severity) -> str:
    return {
        Severity.HIGH: text("notifications.severity.high"),
        Severity.MEDIUM: text("notifications.severity.medium"),
        Severity.LOW: text("notifications.severity.low"),
    }[lowest]


def _row(one: WebhookView, last: DeliveryView | None) -> Row:
    scope = f"{one.site}/{one.machine}" if one.machine else one.site or text("notifications.webhooks.all_sites")
    if one.enabled:
        state = tag_cell(text("notifications.webhooks.enabled"), "●", "ac-good")
        switch = (
            "disable",
            text("notifications.webhooks.disable"),
            text("notifications.webhooks.disable_label", webhook=one.id),
        )
    else:
        state = tag_cell(text("notifications.webhooks.disabled"), "✕", "ac-bad-word") | {"more": one.error or ""}
        switch = (
            "enable",
            text("notifications.webhooks.enable"),
            text("notifications.webhooks.enable_label", webhook=one.id),
        )
    actions = actions_cell(
        ("test", text("notifications.webhooks.test"), text("notifications.webhooks.test_label", webhook=one.id)),
        (
            "policy",
            text("notifications.webhooks.policy"),
            text("notifications.webhooks.policy_label", webhook=one.id),
        ),
        switch,
        (
            "remove",
            text("notifications.webhooks.remove"),
            text("notifications.webhooks.remove_label", webhook=one.id),
        ),
    )
    name: Cell = {"text": one.url, "more": text("notifications.webhook", webhook=one.id)}
    what: Cell = {"text": _severity(one.severity), "more": f"{scope}. {_policy_text(one)}"}
    return Row(str(one.id), [name, what, state, _last(last), actions])


def _policy_text(webhook: WebhookView) -> str:
    return webhook.policy_text or text("notifications.webhooks.policy.site_rule")


def _last(delivery: DeliveryView | None) -> Cell:
    if delivery is None:
        return text("notifications.webhooks.none_yet")
    answer = answer_text(delivery)
    more = text("notifications.webhooks.attempts", count=delivery.attempts, answer=answer) if answer else ""
    return state_cell(delivery) | {"more": more}
