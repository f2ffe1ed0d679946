"""The permissions of every route; the service does not start if a route has no entry.

``least`` is the lowest role allowed. ``scope`` is what the route is about: one SITE in the path, results FILTERED
to the principal's sites, the whole FLEET (principals of all sites only), or NO_SITE. OPEN needs no authentication.
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
    """The sites a route is about."""

    OPEN = "open"
    NO_SITE = "no site"
    SITE = "site"
    FILTERED = "filtered"
    FLEET = "fleet"


@dataclass(frozen=True)
class Rule:
    """The permission of a route."""

    least: Role
    scope: RouteScope
    allow_password_change_pending: bool = False
    streams_body: bool = False  # the route limits the size of the body itself


def _viewer(scope: RouteScope) -> Rule:
    return Rule(Role.VIEWER, scope)


def _operator(scope: RouteScope) -> Rule:
    return Rule(Role.OPERATOR, scope)


def _admin(scope: RouteScope) -> Rule:
    return Rule(Role.ADMIN, scope)


_OPEN: Final = Rule(Role.VIEWER, RouteScope.OPEN, allow_password_change_pending=True)
_OWN: Final = Rule(Role.VIEWER, RouteScope.NO_SITE, allow_password_change_pending=True)
_MACHINE: Final = "/v1/machines/{site}/{machine}"

PERMISSIONS: Final[dict[str, Rule]] = {
    # Liveness is public; details of errors need authentication.
    "GET /livez": _OPEN,
    "HEAD /livez": _OPEN,
    "GET /readyz": _OPEN,
    "HEAD /readyz": _OPEN,
    "GET /v1/status": _viewer(RouteScope.FILTERED),
    # Metrics of the whole fleet: Prometheus needs a viewer's key of all sites.
    "GET /metrics": _viewer(RouteScope.FLEET),
    # The own session and password
    "POST /v1/session": _OPEN,
    "DELETE /v1/session": _OWN,
    "GET /v1/me": _OWN,
    "POST /v1/me/password": _OWN,
    # Reading machines
    "GET /v1/machines": _viewer(RouteScope.FILTERED),
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
    "GET /v1/fleet": _viewer(RouteScope.FILTERED),
    "GET /v1/forecasts": _viewer(RouteScope.FILTERED),
    "GET /v1/stream": _viewer(RouteScope.FILTERED),
    "GET /v1/silent": _viewer(RouteScope.FILTERED),
    "GET /v1/scoreboard": _viewer(RouteScope.FILTERED),
    "GET /v1/alarm-metrics": _viewer(RouteScope.FILTERED),
    "GET /v1/alarm-metrics/top.csv": _viewer(RouteScope.FILTERED),
    "GET /v1/alarm-metrics/rows.csv": _viewer(RouteScope.FILTERED),
    "GET /v1/alarm-metrics/floods.csv": _viewer(RouteScope.FILTERED),
    "GET /v1/alarm-metrics/chatter.csv": _viewer(RouteScope.FILTERED),
    "GET /v1/alarm-metrics/standing.csv": _viewer(RouteScope.FILTERED),
    "GET /v1/alarm-metrics/stale.csv": _viewer(RouteScope.FILTERED),
    "GET /v1/alarm-metrics/active.csv": _viewer(RouteScope.FILTERED),
    "GET /v1/alarms.csv": _viewer(RouteScope.FILTERED),
    "GET /v1/notifications": _viewer(RouteScope.FILTERED),
    "GET /v1/notification-policies": _viewer(RouteScope.FILTERED),
    "GET /v1/answers": _viewer(RouteScope.FILTERED),
    "GET /v1/answers.csv": _viewer(RouteScope.FILTERED),
    "GET /v1/shelves": _viewer(RouteScope.FILTERED),
    "GET /v1/maintenance": _viewer(RouteScope.FILTERED),
    "GET /v1/catalogue": _viewer(RouteScope.NO_SITE),
    "GET /v1/catalogue.csv": _viewer(RouteScope.NO_SITE),
    "GET /v1/catalogue/{code}": _viewer(RouteScope.NO_SITE),
    # Reading models
    "GET /v1/jobs": _viewer(RouteScope.FILTERED),
    "GET /v1/jobs/{job}": _viewer(RouteScope.FILTERED),
    "GET /v1/jobs/{job}/events": _viewer(RouteScope.FILTERED),
    "GET /v1/models": _viewer(RouteScope.FILTERED),
    "GET /v1/models/{version}": _viewer(RouteScope.FILTERED),
    "GET /v1/memory": _viewer(RouteScope.FILTERED),
    # Operating
    "POST /v1/notifications/{number}/answer": _operator(RouteScope.FILTERED),
    f"POST {_MACHINE}/answers": _operator(RouteScope.SITE),
    f"POST {_MACHINE}/acknowledgements": _operator(RouteScope.SITE),
    f"POST {_MACHINE}/shelves": _operator(RouteScope.SITE),
    f"DELETE {_MACHINE}/shelves/{{number}}": _operator(RouteScope.SITE),
    "POST /v1/maintenance": _operator(RouteScope.FILTERED),
    "DELETE /v1/maintenance/{number}": _operator(RouteScope.FILTERED),
    # Raw payloads may contain what an agent should not have sent.
    "GET /v1/quarantine": _operator(RouteScope.FILTERED),
    "GET /v1/quarantine/reasons": _viewer(RouteScope.FILTERED),
    "GET /v1/quarantine/{number}": _operator(RouteScope.FILTERED),
    "POST /v1/quarantine/replay": _operator(RouteScope.FILTERED),
    "POST /v1/quarantine/{number}/replay": _operator(RouteScope.FILTERED),
    # Administration
    "POST /v1/machines": _admin(RouteScope.FILTERED),
    f"POST {_MACHINE}/history": Rule(Role.ADMIN, RouteScope.SITE, streams_body=True),
    f"POST {_MACHINE}/history/preview": Rule(Role.ADMIN, RouteScope.SITE, streams_body=True),
    f"POST {_MACHINE}/refresh": _admin(RouteScope.SITE),
    f"POST {_MACHINE}/retire": _admin(RouteScope.SITE),
    f"POST {_MACHINE}/erase": _admin(RouteScope.SITE),
    f"GET {_MACHINE}/credentials": _operator(RouteScope.SITE),
    f"POST {_MACHINE}/credentials/rotate": _admin(RouteScope.SITE),
    f"POST {_MACHINE}/credentials/revoke": _admin(RouteScope.SITE),
    "POST /v1/catalogue": _admin(RouteScope.FLEET),
    "PUT /v1/catalogue/{code}": _admin(RouteScope.FLEET),
    "POST /v1/models/rollback": _admin(RouteScope.FLEET),
    "POST /v1/models/{version}/promote": _admin(RouteScope.FLEET),
    # A URL may contain a token, and a test makes the service call it.
    "GET /v1/webhooks": _admin(RouteScope.FILTERED),
    "POST /v1/webhooks": _admin(RouteScope.FILTERED),
    "GET /v1/webhooks/{number}": _admin(RouteScope.FILTERED),
    "PATCH /v1/webhooks/{number}": _admin(RouteScope.FILTERED),
    "DELETE /v1/webhooks/{number}": _admin(RouteScope.FILTERED),
    "POST /v1/webhooks/{number}/test": _admin(RouteScope.FILTERED),
    "PUT /v1/webhooks/{number}/policy": _admin(RouteScope.FILTERED),
    "PUT /v1/notification-policies/{site}": _admin(RouteScope.SITE),
    # Users and API keys
    "GET /v1/users": _admin(RouteScope.FILTERED),
    "POST /v1/users": _admin(RouteScope.FILTERED),
    "PATCH /v1/users/{name}": _admin(RouteScope.FILTERED),
    "POST /v1/users/{name}/password": _admin(RouteScope.FILTERED),
    "DELETE /v1/users/{name}": _admin(RouteScope.FILTERED),
    "GET /v1/keys": _admin(RouteScope.FILTERED),
    "POST /v1/keys": _admin(RouteScope.FILTERED),
    "DELETE /v1/keys/{number}": _admin(RouteScope.FILTERED),
    "GET /v1/audit": _admin(RouteScope.FLEET),
    # The API documentation; its scripts contain no data.
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
    """The rule of a request and the parameters of its path."""

    route: str  # as in the table, without the method
    rule: Rule
    names: dict[str, str]

    def check(self, principal: Principal) -> None:
        """Raise unless the principal may use the route."""
        if principal.must_change and not self.rule.allow_password_change_pending:
            raise Forbidden("Your temporary password must be changed first: POST /v1/me/password.")
        if not principal.may(self.rule.least):
            raise Forbidden(f"This needs the role {self.rule.least.value}; yours is {principal.role.value}.")
        if self.rule.scope is RouteScope.FLEET and not principal.is_everywhere:
            own = ", ".join(sorted(principal.sites or ()))
            raise Forbidden(f"This concerns all sites, and your sites are: {own}.")
        if self.rule.scope is RouteScope.SITE and not principal.can_see(self.names["site"]):
            if "machine" not in self.names:
                raise NotFound(f"Site {self.names['site']} has no machines.")
            raise unknown_machine(MachineId(self.names["site"], self.names["machine"]))


@dataclass
class Table:
    """Finds the rule of a request by method and path, as the router finds its route."""

    rules: dict[str, Rule] = field(default_factory=lambda: PERMISSIONS)
    _plain: dict[tuple[str, str], MatchedRule] = field(init=False, default_factory=dict)
    _named: dict[tuple[str, int], list[tuple[list[str], MatchedRule]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for line, rule in self.rules.items():
            self.add(line, rule)

    def add(self, line: str, rule: Rule) -> None:
        """Add the rule of a route that was added to the app later."""
        method, _, path = line.partition(" ")
        match, parts = MatchedRule(path, rule, {}), path.split("/")
        if "{" not in path:
            self._plain[method, path] = match
        else:
            self._named.setdefault((method, len(parts)), []).append((parts, match))

    def find(self, method: str, path: str) -> MatchedRule | None:
        """Return the rule of a request, or None if there is no such route."""
        plain = self._plain.get((method, path))
        if plain is not None:
            return plain
        given = path.split("/")
        for parts, match in self._named.get((method, len(given)), ()):
            names = _named(parts, given)
            if names is not None:
                return MatchedRule(match.route, match.rule, names)
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
    """Add security requirements and their error responses to an OpenAPI document."""
    schemes = openapi.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["bearer"] = {"type": "http", "scheme": "bearer", "description": "An API key or a session's token."}
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            rule = table.rules[f"{method.upper()} {path}"]
            answers = [422, 429] if path.startswith("/v1/") else [429]
            if rule.scope is not RouteScope.OPEN:
                operation["security"] = [{"bearer": []}]
                answers += [401, 403]
            elif method == "post":
                answers += [401, 403]  # wrong user name or password, and cross-site requests
            if method != "get":
                answers.append(413)
            for status, answer in responses(*answers).items():
                operation["responses"].setdefault(str(status), answer)
    return openapi
