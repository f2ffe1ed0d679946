"""``alarmcast admin user`` and ``key``: who may sign in, and which programs may ask."""

from typing import Annotated

import typer

from service.app.configuration import load_settings
from service.cli.arguments import DataDir
from service.cli.client import api
from service.cli.tables import Row, moment, show
from wire.enums import Role

users = typer.Typer(help="Who may sign in.", no_args_is_help=True)
keys = typer.Typer(help="Which programs may ask.", no_args_is_help=True)

UserName = Annotated[str, typer.Argument(metavar="NAME", help="Which user.")]
RoleOption = Annotated[Role, typer.Option(help="viewer looks, operator runs the plant, admin changes who may.")]
SiteOption = Annotated[
    list[str] | None, typer.Option("--site", help="Only this site; may be given several times.")
]


@users.command("add")
def user_add(
    name: UserName, role: RoleOption = Role.VIEWER, site: SiteOption = None, data_dir: DataDir = None
) -> None:
    """Let somebody sign in; the password is printed once and must be changed at the first sign-in."""
    with api(load_settings(data_dir=data_dir)) as client:
        made = client.users.add(name, role=role, sites=site or None)
    typer.echo(f"{name} is {role.value} of {_sites(made.sites)}.")
    typer.echo(f"One-time password, shown this once: {made.password}")


@users.command("list")
def user_list(data_dir: DataDir = None) -> None:
    """List who may sign in."""
    with api(load_settings(data_dir=data_dir)) as client:
        listed = client.users.list().users
    titles = ("user", "role", "sites", "signed in", "password")
    rows: list[Row] = []
    for one in listed:
        signed_in = moment(one.last_login_at)
        password = "one-time" if one.must_change else "own"
        rows.append((one.name, one.role.value, _sites(one.sites), signed_in, password))
    show(titles, rows)


@users.command("role")
def user_role(
    name: UserName,
    role: Annotated[Role, typer.Argument(help="The new role.")],
    site: SiteOption = None,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="For every site.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Give a user another role, and other sites if any are named."""
    with api(load_settings(data_dir=data_dir)) as client:
        if site or everywhere:
            changed = client.users.change(name, role=role, sites=None if everywhere else site)
        else:
            changed = client.users.change(name, role=role)
    typer.echo(f"{name} is {changed.role.value} of {_sites(changed.sites)}.")


@users.command("password")
def user_password(name: UserName, data_dir: DataDir = None) -> None:
    """Give a user a new one-time password, printed once; they are signed out everywhere."""
    with api(load_settings(data_dir=data_dir)) as client:
        told = client.users.reset_password(name)
    typer.echo(f"One-time password of {name}, shown this once: {told.password}")


@users.command("remove")
def user_remove(name: UserName, data_dir: DataDir = None) -> None:
    """Let somebody sign in no more."""
    with api(load_settings(data_dir=data_dir)) as client:
        client.users.remove(name)
    typer.echo(f"{name} can no longer sign in.")


@keys.command("add")
def key_add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    role: RoleOption = Role.VIEWER,
    site: SiteOption = None,
    days: Annotated[int | None, typer.Option(help="Void after so many days; never unless given.", min=1)] = None,
    data_dir: DataDir = None,
) -> None:
    """Make a key for a program; it is printed once."""
    with api(load_settings(data_dir=data_dir)) as client:
        made = client.keys.add(name, role=role, sites=site or None, days=days)
    typer.echo(f"Key {made.id}, {name}, is {role.value} of {_sites(made.sites)}.", err=True)
    typer.echo("Send it as Authorization: Bearer. It is shown this once:", err=True)
    typer.echo(made.key)


@keys.command("list")
def key_list(data_dir: DataDir = None) -> None:
    """List keys, without their secrets."""
    with api(load_settings(data_dir=data_dir)) as client:
        listed = client.keys.list().keys
    titles = ("key", "name", "begins", "role", "sites", "made by", "expires", "last used")
    rows: list[Row] = []
    for one in listed:
        expires = moment(one.expires_at)
        used = moment(one.used_at)
        begins = f"ack_{one.prefix}"
        rows.append(
            (str(one.id), one.name, begins, one.role.value, _sites(one.sites), one.created_by, expires, used)
        )
    show(titles, rows)


@keys.command("revoke")
def key_revoke(
    number: Annotated[int, typer.Argument(metavar="KEY", help="Its number.")],
    reason: Annotated[str | None, typer.Option(help="Kept in the book of changes.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Take a key back, at once."""
    with api(load_settings(data_dir=data_dir)) as client:
        client.keys.revoke(number, reason=reason)
    typer.echo(f"Key {number} is void.")


def _sites(sites: list[str] | None) -> str:
    return "every site" if sites is None else ", ".join(sites)
