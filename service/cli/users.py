"""``alarmcast admin user`` and ``key``: manage users and API keys."""

from typing import Annotated

import typer

from service.cli.arguments import DataDir
from service.cli.client import api
from service.cli.tables import Row, moment, show
from wire.enums import Role

users = typer.Typer(help="Manage users.", no_args_is_help=True)
keys = typer.Typer(help="Manage API keys.", no_args_is_help=True)

UserName = Annotated[str, typer.Argument(metavar="NAME", help="The user name.")]
RoleOption = Annotated[Role, typer.Option(help="viewer reads, operator operates the plant, admin manages it.")]
SiteOption = Annotated[
    list[str] | None, typer.Option("--site", help="Only this site; may be given several times.")
]


@users.command("add")
def user_add(
    name: UserName, role: RoleOption = Role.VIEWER, site: SiteOption = None, data_dir: DataDir = None
) -> None:
    """Add a user; the temporary password is printed once and must be changed at the first login."""
    with api(data_dir) as client:
        user = client.users.add(name, role=role, sites=site or None)
    typer.echo(f"{name} is {role.value} of {_sites(user.sites)}.")
    typer.echo(f"One-time password, shown this once: {user.password}")


@users.command("list")
def user_list(data_dir: DataDir = None) -> None:
    """List users."""
    with api(data_dir) as client:
        listed = client.users.list().users
    titles = ("user", "role", "sites", "last login", "password")
    rows: list[Row] = []
    for user in listed:
        password = "temporary" if user.must_change else "set by user"
        rows.append((user.name, user.role.value, _sites(user.sites), moment(user.last_login_at), password))
    show(titles, rows)


@users.command("role")
def user_role(
    name: UserName,
    role: Annotated[Role, typer.Argument(help="The new role.")],
    site: SiteOption = None,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="For every site.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Change a user's role, and their sites if any are given."""
    with api(data_dir) as client:
        if site or everywhere:
            changed = client.users.change(name, role=role, sites=None if everywhere else site)
        else:
            changed = client.users.change(name, role=role)
    typer.echo(f"{name} is {changed.role.value} of {_sites(changed.sites)}.")


@users.command("password")
def user_password(name: UserName, data_dir: DataDir = None) -> None:
    """Give a user a new temporary password, printed once, and end all their sessions."""
    with api(data_dir) as client:
        reset = client.users.reset_password(name)
    typer.echo(f"One-time password of {name}, shown this once: {reset.password}")


@users.command("remove")
def user_remove(name: UserName, data_dir: DataDir = None) -> None:
    """Remove a user."""
    with api(data_dir) as client:
        client.users.remove(name)
    typer.echo(f"{name} can no longer log in.")


@keys.command("add")
def key_add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The purpose of the key.")],
    role: RoleOption = Role.VIEWER,
    site: SiteOption = None,
    days: Annotated[
        int | None, typer.Option(help="Expires after so many days; never unless given.", min=1)
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Create an API key; it is printed once."""
    with api(data_dir) as client:
        key = client.keys.add(name, role=role, sites=site or None, days=days)
    typer.echo(f"Key {key.id}, {name}, is {role.value} of {_sites(key.sites)}.", err=True)
    typer.echo("Send it as Authorization: Bearer. It is shown this once:", err=True)
    typer.echo(key.key)


@keys.command("list")
def key_list(data_dir: DataDir = None) -> None:
    """List API keys, without their secrets."""
    with api(data_dir) as client:
        listed = client.keys.list().keys
    titles = ("key", "name", "prefix", "role", "sites", "created by", "expires", "last used")
    rows: list[Row] = []
    for key in listed:
        expires, used = moment(key.expires_at), moment(key.used_at)
        prefix, role = f"ack_{key.prefix}", key.role.value
        rows.append((str(key.id), key.name, prefix, role, _sites(key.sites), key.created_by, expires, used))
    show(titles, rows)


@keys.command("revoke")
def key_revoke(
    number: Annotated[int, typer.Argument(metavar="KEY", help="Its id.")],
    reason: Annotated[str | None, typer.Option(help="Recorded in the audit log.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Revoke an API key, at once."""
    with api(data_dir) as client:
        client.keys.revoke(number, reason=reason)
    typer.echo(f"Key {number} is revoked.")


def _sites(sites: list[str] | None) -> str:
    return "every site" if sites is None else ", ".join(sites)
