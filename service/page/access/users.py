"""People: who may sign in, in which role and where; added, changed, given a new password, removed."""

from service.page.access.actions import Action, ActionRunner, FormValues, OneTimeSecret
from service.page.access.role_fields import Places, role_field, sites_cell
from service.page.access.widgets import add_button
from service.page.components.blocks import panel
from service.page.components.confirm_dialog import Field
from service.page.components.data_table import Cell, Column, DataTable, Row, actions_cell, date_cell, tag_cell
from service.page.layout import PageContext
from wire.enums import Role
from wire.rest.auth import UserView

_COLUMNS = [
    Column("name"),
    Column("role"),
    Column("sites"),
    Column("last sign-in"),
    Column("password", hint="One that was told once must be changed at the first sign-in."),
    Column(""),
]
_TOLD_ONCE = "Tell it by another way than e-mail; at the first sign-in it must be changed."
_RULE = "lower-case letters, digits, . - and _"


class People:
    """The table of people and what can be done about each; about oneself it takes another admin."""

    def __init__(self, told: PageContext, places: Places, desk: ActionRunner) -> None:
        self._told, self._places, self._desk = told, places, desk
        self._users: dict[str, UserView] = {}
        with panel("People", note="who may sign in"):
            self._table = DataTable(_COLUMNS, [], label="People", zone=told.zone)
            self._table.on_action(self._on_deed)
            add_button("Add a person …", self._ask_add)

    async def renew(self) -> None:
        """Show them as they are now."""
        users = (await self._told.cache.get_or_fetch("users", self._told.client.users.list)).users
        self._users = {one.name: one for one in users}
        self._table.show([_row(one, is_self=one.name == self._told.me.name) for one in users])

    async def _on_deed(self, deed: str, name: str) -> None:
        user = self._users.get(name)
        if user is None:
            return  # removed by somebody else meanwhile
        match deed:
            case "change":
                self._ask_change(user)
            case "reset":
                self._ask_reset(name)
            case "remove":
                self._ask_remove(name)

    def _ask_add(self) -> None:
        async def add(wish: FormValues) -> OneTimeSecret:
            made = await self._told.client.users.add(
                wish.typed["name"], role=Role(wish.typed["role"]), sites=wish.typed["sites"]
            )
            return OneTimeSecret(f"The one-time password of {made.name}", [_TOLD_ONCE], made.password or "")

        name = Field("name", "Name", hint=_RULE, more={"required": True, "maxlength": 63, "placeholder": "maria"})
        self._desk.ask(
            Action(
                "Add a person",
                ["They get a one-time password, which is shown next and never again."],
                "Add them",
                add,
                fields=[name, role_field(Role.VIEWER), self._places.field(self._places.usual)],
            )
        )

    def _ask_change(self, user: UserView) -> None:
        async def change(wish: FormValues) -> str:
            role = Role(wish.typed["role"])
            now = await self._told.client.users.change(user.name, role=role, sites=wish.typed["sites"])
            return f"{now.name} is {now.role.value} of {sites_cell(now.sites)}."

        self._desk.ask(
            Action(
                f"What may {user.name} do?",
                ["It holds at once, also where they are signed in."],
                "Change it",
                change,
                fields=[role_field(user.role), self._places.field(user.sites)],
            )
        )

    def _ask_reset(self, name: str) -> None:
        async def reset(_wish: FormValues) -> OneTimeSecret:
            told = await self._told.client.users.reset_password(name)
            return OneTimeSecret(f"The one-time password of {told.name}", [_TOLD_ONCE], told.password)

        self._desk.ask(
            Action(
                f"A new password for {name}?",
                [f"The one they have is void at once, and {name} is signed out everywhere."],
                "Reset it",
                reset,
            )
        )

    def _ask_remove(self, name: str) -> None:
        async def remove(_wish: FormValues) -> str:
            await self._told.client.users.remove(name)
            return f"{name} may sign in no more."

        self._desk.ask(
            Action(
                f"Remove {name}?",
                [f"{name} is signed out everywhere and may sign in no more.", "What they did stays in the book."],
                "Remove them",
                remove,
            )
        )


def _row(user: UserView, *, is_self: bool) -> Row:
    name: Cell = {"text": user.name, "more": "you"} if is_self else user.name
    password: Cell = tag_cell("to be changed", "◆", "ac-sev-medium", 1) if user.must_change else "their own"
    what: Cell = (
        ""
        if is_self
        else actions_cell(
            ("change", "Change", f"Change {user.name}"),
            ("reset", "Reset password", f"Reset the password of {user.name}"),
            ("remove", "Remove", f"Remove {user.name}"),
        )
    )
    signed_in = date_cell(user.last_login_at) or "never"
    return Row(user.name, [name, user.role.value, sites_cell(user.sites), signed_in, password, what])
