"""Build docs/reference/rest.md from the client's calls and the table of permissions."""

import inspect
from collections.abc import Iterator

from alarmcast import Client
from alarmcast.endpoint import Endpoint, IteratorEndpoint, Resource
from service.http.permissions import PERMISSIONS, RouteScope, Rule

_HEAD = """# REST API

Written by `scripts/reference` from the Python client and the permissions table; a test compares the page with
them.

A running service documents every operation in full: `/docs` and `/redoc` for people, `/openapi.json` for
programs. Both load nothing from the internet. Errors are problem documents (RFC 9457). Requests carry
`Authorization: Bearer KEY`, where KEY is an API key (`alarmcast admin key add NAME`) or a session token.

- **Role** is the lowest role that may call the operation: viewer, operator or admin. *public* needs no key.
- **Scope** says which sites an operation concerns. *site*: the site in the path; other sites answer 404. *own
  sites*: the answer is limited to the caller's sites. *all sites*: only callers with access to all sites. *-*:
  no site is involved.
- **Python** is the method of `alarmcast.Client`; `AsyncClient` has the same methods, awaited.
"""
_SCOPES = {
    RouteScope.OPEN: "-",
    RouteScope.NO_SITE: "-",
    RouteScope.SITE: "site",
    RouteScope.FILTERED: "own sites",
    RouteScope.FLEET: "all sites",
}


def page() -> str:
    """Return the whole page."""
    parts = [_HEAD, "| operation | role | scope | Python | what it does |", "|---|---|---|---|---|"]
    rows = sorted(_rows(), key=lambda row: (row[0].strip("`").partition(" ")[2], row[0]))
    parts += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(parts) + "\n"


def _rows() -> Iterator[tuple[str, ...]]:
    with Client("http://localhost") as client:
        resources = {name: value for name, value in vars(client).items() if isinstance(value, Resource)}
    for noun, resource in resources.items():
        for name, declared in vars(type(resource)).items():
            if isinstance(declared, Endpoint | IteratorEndpoint):
                operation = " ".join(declared.route)
                rule = PERMISSIONS[operation]
                summary = (
                    (inspect.getdoc(declared.build) or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")
                )
                yield f"`{operation}`", _role(rule), _SCOPES[rule.scope], f"`{noun}.{name}`", summary


def _role(rule: Rule) -> str:
    return "public" if rule.scope is RouteScope.OPEN else rule.least.value
