"""The notification policy of each site in one sentence, what it sent and held back; admins change it."""

from collections.abc import Sequence
from typing import Any

from service.page.components.actions import Action, ActionRunner, FormValues
from service.page.components.blocks import panel
from service.page.components.confirm_dialog import Field
from service.page.components.data_table import Cell, Column, DataTable, Row, actions_cell
from service.page.layout import PageContext
from service.page.texts import text
from wire.enums import Role, Severity
from wire.rest.policies import NotificationPolicy, SitePolicyView


class Policies:
    """The table of policies with its action."""

    def __init__(self, context: PageContext, actions: ActionRunner) -> None:
        self._context, self._actions = context, actions
        self._is_admin = context.may(Role.ADMIN)
        self._policies: dict[str, SitePolicyView] = {}
        columns = [
            Column(text("notifications.policies.site")),
            Column(text("notifications.policies.rule")),
            Column(text("notifications.policies.sent"), number=True),
            Column(text("notifications.policies.held_back"), number=True),
            *([Column("")] if self._is_admin else []),
        ]
        title = text("notifications.policies.title")
        with panel(title, note=text("notifications.policies.note"), wide=True):
            self._table = DataTable(columns, label=title)
            self._table.on_action(self._ask_change)

    def show(self, policies: Sequence[SitePolicyView]) -> None:
        """Show the policy of each site."""
        self._policies = {one.site: one for one in policies}
        self._table.show([self._row(one) for one in policies])

    def _row(self, one: SitePolicyView) -> Row:
        label = text("notifications.policies.change_label", site=one.site)
        change = actions_cell(("change", text("notifications.policies.change"), label))
        cells: list[Cell] = [one.site, one.text, one.sent, one.held_back, *([change] if self._is_admin else [])]
        return Row(one.site, cells)

    async def _ask_change(self, _action: str, site: str) -> None:
        if site not in self._policies:
            return  # its last machine was retired in the meantime

        async def change(sent: FormValues) -> str:
            policy = submitted_policy(sent.values)
            changed = await self._context.client.policies.set(site, policy, reason=sent.reason)
            return text("notifications.policies.done", rule=changed.text)

        title = text("notifications.policies.change_title", site=site)
        lines = [text("notifications.policies.change_help")]
        button, fields = text("notifications.policies.change"), policy_fields(self._policies[site].policy)
        self._actions.ask(Action(title, lines, button, change, fields=fields, needs_reason=True))


def policy_fields(policy: NotificationPolicy) -> list[Field]:
    """Return the fields of a policy, filled in."""
    rules = {Severity.HIGH: policy.high, Severity.MEDIUM: policy.medium, Severity.LOW: policy.low}
    titles = {
        Severity.HIGH: text("notifications.policies.high"),
        Severity.MEDIUM: text("notifications.policies.medium"),
        Severity.LOW: text("notifications.policies.low"),
    }
    share = {"min": 0, "max": 100, "step": "any"}
    return [
        *(
            Field(
                severity.value,
                titles[severity],
                kind="number",
                value="" if severity in policy.exclude_severities else round(100 * rule.probability, 2),
                more=share,
            )
            for severity, rule in rules.items()
        ),
        Field(
            "lift",
            text("notifications.policies.lift"),
            kind="number",
            value=max(rule.lift for rule in rules.values()),
            more={"min": 0, "max": 100, "step": "any"},
        ),
        Field(
            "exclude_codes",
            text("notifications.policies.codes"),
            value=", ".join(map(str, policy.exclude_codes)),
            more={"placeholder": "26, 29"},
        ),
        Field(
            "per_shift",
            text("notifications.policies.per_shift"),
            kind="number",
            value="" if policy.per_shift is None else policy.per_shift,
            more={"min": 1, "step": 1},
        ),
    ]


def submitted_policy(values: dict[str, Any]) -> dict[str, Any]:
    """Return the policy that was typed in; an empty probability leaves a severity out."""
    lift = values["lift"] or 0
    given = {one.value: values[one.value] for one in Severity if values[one.value] != ""}
    rules = {name: {"probability": round(float(share) / 100, 4), "lift": lift} for name, share in given.items()}
    codes = [int(part) if part.isdecimal() else part for part in values["exclude_codes"].replace(",", " ").split()]
    return rules | {
        "exclude_severities": [one.value for one in Severity if one.value not in given],
        "exclude_codes": codes,
        "per_shift": None if values["per_shift"] == "" else values["per_shift"],
    }
