"""The API keys: created, shown once, and revoked."""

from service.page.access.role_fields import SiteChoices, role_field, sites_text
from service.page.components.actions import Action, ActionRunner, FormValues, OneTimeSecret
from service.page.components.blocks import add_button, panel
from service.page.components.confirm_dialog import Field
from service.page.components.data_table import Column, DataTable, Row, actions_cell, date_cell
from service.page.layout import PageContext
from service.page.texts import text
from wire.enums import Role
from wire.rest.auth import ApiKeyView

_MAX_DAYS, _DEFAULT_DAYS = 3650, 365


class ApiKeys:
    """The table of API keys with its actions."""

    def __init__(self, context: PageContext, sites: SiteChoices, actions: ActionRunner) -> None:
        self._context, self._sites, self._actions = context, sites, actions
        self._keys: dict[str, ApiKeyView] = {}
        columns = [
            Column(text("access.column.name")),
            Column(text("access.keys.prefix"), hint=text("access.keys.prefix_hint")),
            Column(text("access.column.role")),
            Column(text("access.column.sites")),
            Column(text("access.keys.expires")),
            Column(text("access.keys.last_used"), hint=text("access.keys.last_used_hint")),
            Column(""),
        ]
        with panel(text("access.keys.title"), note=text("access.keys.note")):
            self._table = DataTable(columns, label=text("access.keys.title"), zone=context.zone)
            self._table.on_action(self._on_action)
            add_button(text("access.keys.add_open"), self._ask_add)

    async def refresh(self) -> None:
        """Fetch and show the API keys."""
        keys = (await self._context.cache.get_or_fetch("keys", self._context.client.keys.list)).keys
        self._keys = {str(one.id): one for one in keys}
        self._table.show([_row(one) for one in keys], empty=text("access.keys.empty"))

    async def _on_action(self, _action: str, number: str) -> None:
        if number in self._keys:  # it may be revoked in the meantime
            self._ask_revoke(self._keys[number])

    def _ask_add(self) -> None:
        async def add(sent: FormValues) -> OneTimeSecret:
            days = sent.values["days"]
            created = await self._context.client.keys.add(
                sent.values["name"],
                role=Role(sent.values["role"]),
                sites=sent.values["sites"],
                days=None if days == "" else days,
            )
            title = text("access.keys.secret_title", name=created.name)
            return OneTimeSecret(title, [text("access.keys.secret_help")], created.key)

        name = {"required": True, "maxlength": 63, "placeholder": "andon-board"}
        days = Field(
            "days",
            text("access.keys.days"),
            kind="number",
            value=str(_DEFAULT_DAYS),
            hint=text("access.keys.days_hint"),
            more={"min": 1, "max": _MAX_DAYS, "step": 1},
        )
        self._actions.ask(
            Action(
                text("access.keys.add"),
                [text("access.keys.add_help")],
                text("access.keys.add"),
                add,
                fields=[
                    Field("name", text("access.keys.name"), more=name),
                    role_field(Role.VIEWER),
                    self._sites.field(self._sites.default),
                    days,
                ],
            )
        )

    def _ask_revoke(self, key: ApiKeyView) -> None:
        async def revoke(sent: FormValues) -> str:
            await self._context.client.keys.revoke(key.id, reason=sent.reason)
            return text("access.keys.revoked", name=key.name)

        self._actions.ask(
            Action(
                text("access.keys.revoke_title", name=key.name),
                [text("access.keys.revoke_help", prefix=key.prefix)],
                text("access.keys.revoke"),
                revoke,
                needs_reason=True,
            )
        )


def _row(key: ApiKeyView) -> Row:
    return Row(
        str(key.id),
        [
            {"text": key.name, "more": text("access.keys.created_by", user=key.created_by)},
            f"ack_{key.prefix}_…",
            key.role.value,
            sites_text(key.sites),
            date_cell(key.expires_at, until=True) or text("access.keys.expires_never"),
            date_cell(key.used_at) or text("access.never"),
            actions_cell(
                ("revoke", text("access.keys.revoke"), text("access.keys.revoke_label", name=key.name)),
            ),
        ],
    )
