"""Keys for programs: made, shown once, and taken back."""

from service.page.access.actions import Action, ActionRunner, FormValues, OneTimeSecret
from service.page.access.role_fields import Places, role_field, sites_cell
from service.page.access.widgets import add_button, calm
from service.page.components.blocks import panel
from service.page.components.confirm_dialog import Field
from service.page.components.data_table import Column, DataTable, Row, actions_cell, date_cell
from service.page.components.refreshable import Refreshable
from service.page.layout import PageContext
from wire.enums import Role
from wire.rest.auth import ApiKeyView

_COLUMNS = [
    Column("name"),
    Column("begins with", hint="What stands between the two underscores of the key; the rest is shown once."),
    Column("role"),
    Column("sites"),
    Column("until"),
    Column("last used", hint="To the minute."),
    Column(""),
]
_NONE = "No program has a key yet; one is needed for REST, Prometheus and the Python client."
_LONGEST, _USUAL = 3650, 365  # days


class Programs:
    """The table of keys and what can be done about each."""

    def __init__(self, told: PageContext, places: Places, desk: ActionRunner) -> None:
        self._told, self._places, self._desk = told, places, desk
        self._keys: dict[str, ApiKeyView] = {}
        with panel("Keys for programs", note="each for one program, so that it can be taken back alone"):
            self._calm = Refreshable(calm)
            self._table = DataTable(_COLUMNS, [], label="Keys for programs", zone=told.zone)
            self._table.on_action(self._on_deed)
            add_button("Make a key …", self._ask_add)

    async def renew(self) -> None:
        """Show them as they are now."""
        keys = (await self._told.cache.get_or_fetch("keys", self._told.client.keys.list)).keys
        self._keys = {str(one.id): one for one in keys}
        self._calm.show("" if keys else _NONE)
        self._table.set_visibility(bool(keys))
        self._table.show([_row(one) for one in keys])

    async def _on_deed(self, _deed: str, number: str) -> None:
        if number in self._keys:  # nobody has revoked it meanwhile
            self._ask_revoke(self._keys[number])

    def _ask_add(self) -> None:
        async def add(wish: FormValues) -> OneTimeSecret:
            days = wish.typed["days"]
            made = await self._told.client.keys.add(
                wish.typed["name"],
                role=Role(wish.typed["role"]),
                sites=wish.typed["sites"],
                days=None if days == "" else days,
            )
            how = "The program sends it as Authorization: Bearer …; whoever has it may do what it may."
            return OneTimeSecret(f"The key of {made.name}", [how], made.key)

        name = {"required": True, "maxlength": 63, "placeholder": "andon-board"}
        self._desk.ask(
            Action(
                "Make a key",
                ["The key is shown next and never again."],
                "Make it",
                add,
                fields=[
                    Field("name", "What it is for", more=name),
                    role_field(Role.VIEWER),
                    self._places.field(self._places.usual),
                    Field(
                        "days",
                        "Days until it is void",
                        kind="number",
                        value=str(_USUAL),
                        hint="Empty: never.",
                        more={"min": 1, "max": _LONGEST, "step": 1},
                    ),
                ],
            )
        )

    def _ask_revoke(self, key: ApiKeyView) -> None:
        async def revoke(wish: FormValues) -> str:
            await self._told.client.keys.revoke(key.id, reason=wish.reason)
            return f"The key of {key.name} is void."

        self._desk.ask(
            Action(
                f"Revoke the key of {key.name}?",
                [f"The program that has ack_{key.prefix}_… is answered no more from this moment on."],
                "Revoke it",
                revoke,
                needs_reason=True,
            )
        )


def _row(key: ApiKeyView) -> Row:
    made = f"made by {key.created_by}"
    return Row(
        str(key.id),
        [
            {"text": key.name, "more": made},
            f"ack_{key.prefix}_…",
            key.role.value,
            sites_cell(key.sites),
            date_cell(key.expires_at, until=True) or "for ever",
            date_cell(key.used_at) or "never",
            actions_cell(("revoke", "Revoke", f"Revoke the key of {key.name}")),
        ],
    )
