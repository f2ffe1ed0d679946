"""Who may do what: one line for every route, and a route without a line does not start.

``least`` is the lowest role that may. ``reach`` says how far an answer goes: to one SITE that the path names, to
what is NARROWED to the asker's own sites, to things of the whole FLEET, which only those of all sites may touch,
or to what is of NO_SITE. OPEN answers strangers too.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from service.errors import Forbidden, NotFound, unknown_machine
from service.http.principal import Principal
from service.http.problems import responses
from wire.enums import Role
from wire.identity import MachineId


class RouteScope(Enum):
    """Which sites a route is about."""

    OPEN = "open"
    NO_SITE = "no site"
    SITE = "site"
    NARROWED = "narrowed"
    FLEET = "fleet"


@dataclass(frozen=True)
class Rule:
    """Who may use a route; ``unchanged`` those too who must change their password first."""

    least: Role
    reach: RouteScope
    allow_password_change_pending: bool = False
    streams_body: bool = False  # bounds the size of its body itself


def _viewer(reach: RouteScope) -> Rule:
    return Rule(Role.VIEWER, reach)


def _operator(reach: RouteScope) -> Rule:
    return Rule(Role.OPERATOR, reach)


def _admin(reach: RouteScope) -> Rule:
    return Rule(Role.ADMIN, reach)


_OPEN: Final = Rule(Role.VIEWER, RouteScope.OPEN, allow_password_change_pending=True)
_OWN: Final = Rule(Role.VIEWER, RouteScope.NO_SITE, allow_password_change_pending=True)
_MACHINE: Final = "/v1/machines/{site}/{machine}"

PERMISSIONS: Final[dict[str, Rule]] = {
    # Whether it lives is no secret; what is wrong is told only to those who are known.
    "GET /livez": _OPEN,
    "HEAD /livez": _OPEN,
    "GET /readyz": _OPEN,
    "HEAD /readyz": _OPEN,
    "GET /v1/status": _viewer(RouteScope.NARROWED),
    # Figures of the whole fleet; give Prometheus a viewer's key of all sites.
    "GET /metrics": _viewer(RouteScope.FLEET),
    # One's own affairs
    "POST /v1/session": _OPEN,
    "DELETE /v1/session": _OWN,
    "GET /v1/me": _OWN,
    "POST /v1/me/password": _OWN,
    # Looking at machines
    "GET /v1/machines": _viewer(RouteScope.NARROWED),
    f"GET {_MACHINE}": _viewer(RouteScope.SITE),
    f"GET {_MACHINE}/alarms": _viewer(RouteScope.SITE),
    f"GET {_MACHINE}/gaps": _viewer(RouteScope.SITE),
    f"GET {_MACHINE}/timeline": _viewer(RouteScope.SITE),
    f"GET {_MACHINE}/forecast": _viewer(RouteScope.SITE),
    f"GET {_MACHINE}/explanation": _viewer(RouteScope.SITE),
    f"GET {_MACHINE}/scores": _viewer(RouteScope.SITE),
    f"GET {_MACHINE}/history": _viewer(RouteScope.SITE),
    f"GET {_MACHINE}/shelves": _viewer(RouteScope.SITE),
    f"GET {_MACHINE}/acknowledgements": _viewer(RouteScope.SITE),
    "GET /v1/fleet": _viewer(RouteScope.NARROWED),
    "GET /v1/forecasts": _viewer(RouteScope.NARROWED),
    "GET /v1/stream": _viewer(RouteScope.NARROWED),
    "GET /v1/silent": _viewer(RouteScope.NARROWED),
    "GET /v1/scoreboard": _viewer(RouteScope.NARROWED),
    "GET /v1/alarm-metrics": _viewer(RouteScope.NARROWED),
    "GET /v1/alarm-metrics/top.csv": _viewer(RouteScope.NARROWED),
    "GET /v1/alarm-metrics/rows.csv": _viewer(RouteScope.NARROWED),
    "GET /v1/alarm-metrics/floods.csv": _viewer(RouteScope.NARROWED),
    "GET /v1/alarm-metrics/chatter.csv": _viewer(RouteScope.NARROWED),
    "GET /v1/alarm-metrics/standing.csv": _viewer(RouteScope.NARROWED),
    "GET /v1/alarms.csv": _viewer(RouteScope.NARROWED),
    "GET /v1/notifications": _viewer(RouteScope.NARROWED),
    "GET /v1/shelves": _viewer(RouteScope.NARROWED),
    "GET /v1/maintenance": _viewer(RouteScope.NARROWED),
    "GET /v1/catalogue": _viewer(RouteScope.NO_SITE),
    # Looking at what is learned
    "GET /v1/jobs": _viewer(RouteScope.NARROWED),
    "GET /v1/jobs/{job}": _viewer(RouteScope.NARROWED),
    "GET /v1/jobs/{job}/events": _viewer(RouteScope.NARROWED),
    "GET /v1/models": _viewer(RouteScope.NARROWED),
    "GET /v1/models/{version}": _viewer(RouteScope.NARROWED),
    "GET /v1/memory": _viewer(RouteScope.NARROWED),
    # Running the plant
    f"POST {_MACHINE}/acknowledgements": _operator(RouteScope.SITE),
    f"POST {_MACHINE}/shelves": _operator(RouteScope.SITE),
    f"DELETE {_MACHINE}/shelves/{{number}}": _operator(RouteScope.SITE),
    "POST /v1/maintenance": _operator(RouteScope.NARROWED),
    "DELETE /v1/maintenance/{number}": _operator(RouteScope.NARROWED),
    # Bodies as they came may hold what an agent should not have sent.
    "GET /v1/quarantine": _operator(RouteScope.NARROWED),
    "GET /v1/quarantine/reasons": _viewer(RouteScope.NARROWED),
    "GET /v1/quarantine/{number}": _operator(RouteScope.NARROWED),
    "POST /v1/quarantine/replay": _operator(RouteScope.NARROWED),
    "POST /v1/quarantine/{number}/replay": _operator(RouteScope.NARROWED),
    # Changing what there is
    "POST /v1/machines": _admin(RouteScope.NARROWED),
    f"POST {_MACHINE}/history": Rule(Role.ADMIN, RouteScope.SITE, streams_body=True),
    f"POST {_MACHINE}/refresh": _admin(RouteScope.SITE),
    f"POST {_MACHINE}/retire": _admin(RouteScope.SITE),
    f"POST {_MACHINE}/erase": _admin(RouteScope.SITE),
    f"GET {_MACHINE}/credentials": _operator(RouteScope.SITE),
    f"POST {_MACHINE}/credentials/rotate": _admin(RouteScope.SITE),
    f"POST {_MACHINE}/credentials/revoke": _admin(RouteScope.SITE),
    "POST /v1/catalogue": _admin(RouteScope.FLEET),
    "POST /v1/models/rollback": _admin(RouteScope.FLEET),
    "POST /v1/models/{version}/promote": _admin(RouteScope.FLEET),
    # An address may hold a token, and a test makes the service speak to it.
    "GET /v1/webhooks": _admin(RouteScope.NARROWED),
    "POST /v1/webhooks": _admin(RouteScope.NARROWED),
    "GET /v1/webhooks/{number}": _admin(RouteScope.NARROWED),
    "PATCH /v1/webhooks/{number}": _admin(RouteScope.NARROWED),
    "DELETE /v1/webhooks/{number}": _admin(RouteScope.NARROWED),
    "POST /v1/webhooks/{number}/test": _admin(RouteScope.NARROWED),
    # Changing who may
    "GET /v1/users": _admin(RouteScope.NARROWED),
    "POST /v1/users": _admin(RouteScope.NARROWED),
    "PATCH /v1/users/{name}": _admin(RouteScope.NARROWED),
    "POST /v1/users/{name}/password": _admin(RouteScope.NARROWED),
    "DELETE /v1/users/{name}": _admin(RouteScope.NARROWED),
    "GET /v1/keys": _admin(RouteScope.NARROWED),
    "POST /v1/keys": _admin(RouteScope.NARROWED),
    "DELETE /v1/keys/{number}": _admin(RouteScope.NARROWED),
    "GET /v1/audit": _admin(RouteScope.FLEET),
    # The API's own documentation; its scripts say nothing of anybody.
    "GET /openapi.json": _viewer(RouteScope.NO_SITE),
    "HEAD /openapi.json": _viewer(RouteScope.NO_SITE),
    "GET /docs": _viewer(RouteScope.NO_SITE),
    "GET /docs/oauth2-redirect": _viewer(RouteScope.NO_SITE),
    "GET /redoc": _viewer(RouteScope.NO_SITE),
    "GET /static-offline-docs/{path}": _OPEN,
    "HEAD /static-offline-docs/{path}": _OPEN,
}


@dataclass(frozen=True)
class MatchedRule:
    """The line that a request falls under, and what its path names."""

    route: str  # as the table has it, without the method
    rule: Rule
    names: dict[str, str]

    def check(self, principal: Principal) -> None:
        """Raise what a principal is told who may not do this."""
        if principal.must_change and not self.rule.allow_password_change_pending:
            raise Forbidden("Your password was told once; change it first: POST /v1/me/password.")
        if not principal.may(self.rule.least):
            raise Forbidden(f"This needs the role {self.rule.least.value}, and you are {principal.role.value}.")
        if self.rule.reach is RouteScope.FLEET and not principal.is_everywhere:
            own = ", ".join(sorted(principal.sites or ()))
            raise Forbidden(f"This concerns every site, and you act for {own} only.")
        if self.rule.reach is RouteScope.SITE and not principal.can_see(self.names["site"]):
            raise self._nothing_there()

    def _nothing_there(self) -> NotFound:
        return unknown_machine(MachineId(self.names["site"], self.names["machine"]))


@dataclass
class Table:
    """Finds the line of a request by its method and path, as the router will find its route."""

    rules: dict[str, Rule] = field(default_factory=lambda: PERMISSIONS)
    _plain: dict[tuple[str, str], MatchedRule] = field(init=False, default_factory=dict)
    _named: dict[tuple[str, int], list[tuple[list[str], MatchedRule]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for line, rule in self.rules.items():
            self.add(line, rule)

    def add(self, line: str, rule: Rule) -> None:
        """Let a route be found that was added to the app by somebody else."""
        method, _, path = line.partition(" ")
        found, parts = MatchedRule(path, rule, {}), path.split("/")
        if "{" not in path:
            self._plain[method, path] = found
        else:
            self._named.setdefault((method, len(parts)), []).append((parts, found))

    def find(self, method: str, path: str) -> MatchedRule | None:
        """Return a request's line, or None if there is no such route."""
        plain = self._plain.get((method, path))
        if plain is not None:
            return plain
        given = path.split("/")
        for parts, found in self._named.get((method, len(given)), ()):
            names = _named(parts, given)
            if names is not None:
                return MatchedRule(found.route, found.rule, names)
        return None


def _named(parts: list[str], given: list[str]) -> dict[str, str] | None:
    names = {}
    for part, word in zip(parts, given, strict=True):
        if part.startswith("{"):
            if not word:
                return None
            names[part[1:-1]] = word
        elif part != word:
            return None
    return names


def document_rules(openapi: dict[str, Any], table: Table) -> dict[str, Any]:
    """Say in an OpenAPI document who may do what, and how those are answered who may not."""
    schemes = openapi.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["bearer"] = {"type": "http", "scheme": "bearer", "description": "An API key or a session's token."}
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            rule = table.rules[f"{method.upper()} {path}"]
            answers = [422, 429] if path.startswith("/v1/") else [429]
            if rule.reach is not RouteScope.OPEN:
                operation["security"] = [{"bearer": []}]
                answers += [401, 403]
            elif method == "post":
                answers += [401, 403]  # a name or a password that is wrong, and a page of another site
            if method != "get":
                answers.append(413)
            for status, answer in responses(*answers).items():
                operation["responses"].setdefault(str(status), answer)
    return openapi
