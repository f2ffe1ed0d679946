"""The users: listed, added, changed, given a new password, removed."""

from service.page.access.role_fields import SiteChoices, role_field, sites_text
from service.page.components.actions import Action, ActionRunner, FormValues, OneTimeSecret
from service.page.components.blocks import add_button, panel
from service.page.components.confirm_dialog import Field
from service.page.components.data_table import Cell, Column, DataTable, Row, actions_cell, date_cell, tag_cell
from service.page.layout import PageContext
from service.page.texts import text
from wire.enums import Role
from wire.rest.auth import UserView


class Users:
    """The table of users with its actions; admins cannot change themselves."""

    def __init__(self, context: PageContext, sites: SiteChoices, actions: ActionRunner) -> None:
        self._context, self._sites, self._actions = context, sites, actions
        self._users: dict[str, UserView] = {}
        columns = [
            Column(text("access.column.name")),
            Column(text("access.column.role")),
            Column(text("access.column.sites")),
            Column(text("access.users.last_login")),
            Column(text("access.users.password"), hint=text("access.users.password_hint")),
            Column(""),
        ]
        with panel(text("access.users.title")):
            self._table = DataTable(columns, label=text("access.users.title"), zone=context.zone)
            self._table.on_action(self._on_action)
            add_button(text("access.users.add_open"), self._ask_add)

    async def refresh(self) -> None:
        """Fetch and show the users."""
        users = (await self._context.cache.get_or_fetch("users", self._context.client.users.list)).users
        self._users = {one.name: one for one in users}
        self._table.show([_row(one, is_self=one.name == self._context.me.name) for one in users])

    async def _on_action(self, action: str, name: str) -> None:
        user = self._users.get(name)
        if user is None:
            return  # removed in the meantime
        match action:
            case "change":
                self._ask_change(user)
            case "reset":
                self._ask_reset(name)
            case "remove":
                self._ask_remove(name)

    def _ask_add(self) -> None:
        async def add(sent: FormValues) -> OneTimeSecret:
            created = await self._context.client.users.add(
                sent.values["name"], role=Role(sent.values["role"]), sites=sent.values["sites"]
            )
            return _password(created.name, created.password or "")

        name = Field(
            "name",
            text("access.users.name"),
            hint=text("access.users.name_hint"),
            more={"required": True, "maxlength": 63, "placeholder": "maria"},
        )
        self._actions.ask(
            Action(
                text("access.users.add"),
                [text("access.users.add_help")],
                text("access.users.add"),
                add,
                fields=[name, role_field(Role.VIEWER), self._sites.field(self._sites.default)],
            )
        )

    def _ask_change(self, user: UserView) -> None:
        async def change(sent: FormValues) -> str:
            role = Role(sent.values["role"])
            now = await self._context.client.users.change(user.name, role=role, sites=sent.values["sites"])
            return text("access.users.changed", user=now.name, role=now.role.value, sites=sites_text(now.sites))

        self._actions.ask(
            Action(
                text("access.users.change_title", user=user.name),
                [text("access.users.change_help")],
                text("access.users.change_submit"),
                change,
                fields=[role_field(user.role), self._sites.field(user.sites)],
            )
        )

    def _ask_reset(self, name: str) -> None:
        async def reset(_sent: FormValues) -> OneTimeSecret:
            created = await self._context.client.users.reset_password(name)
            return _password(created.name, created.password)

        self._actions.ask(
            Action(
                text("access.users.reset_title", user=name),
                [text("access.users.reset_help", user=name)],
                text("access.users.reset"),
                reset,
            )
        )

    def _ask_remove(self, name: str) -> None:
        async def remove(_sent: FormValues) -> str:
            await self._context.client.users.remove(name)
            return text("access.users.removed", user=name)

        self._actions.ask(
            Action(
                text("access.users.remove_title", user=name),
                [text("access.users.remove_help", user=name), text("access.users.remove_audit")],
                text("access.users.remove_submit"),
                remove,
            )
        )


def _password(user: str, password: str) -> OneTimeSecret:
    title = text("access.users.secret_title", user=user)
    return OneTimeSecret(title, [text("access.users.secret_help")], password)


def _row(user: UserView, *, is_self: bool) -> Row:
    name: Cell = {"text": user.name, "more": text("access.users.you")} if is_self else user.name
    password: Cell = text("access.users.password_own")
    if user.must_change:
        password = tag_cell(text("access.users.password_temporary"), "◆", "ac-sev-medium", 1)
    actions: Cell = ""
    if not is_self:
        actions = actions_cell(
            ("change", text("access.users.change"), text("access.users.change_label", user=user.name)),
            ("reset", text("access.users.reset"), text("access.users.reset_label", user=user.name)),
            ("remove", text("access.users.remove"), text("access.users.remove_label", user=user.name)),
        )
    last_login = date_cell(user.last_login_at) or text("access.never")
    return Row(user.name, [name, user.role.value, sites_text(user.sites), last_login, password, actions])
