"""What Kubernetes is told: valid by its own schemas, confined, and understood by our programs."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from starlette.types import Receive, Scope, Send

from service import __version__
from service.app.http_server import server_config
from service.settings import Settings
from tests.deploy.dockerfile import Dockerfile
from tests.deploy.kustomization import (
    FOLDER,
    SCALED,
    NotUnderstood,
    Thing,
    merged,
    of_kind,
    pods,
    resolved,
    variables,
)
from tests.deploy.sandbox import USER
from tests.deploy.variables import unknown_variables

ONE_POD = ["base", "overlays/postgresql"]
LAYOUTS = [*ONE_POD, SCALED]
PARTS = ["common", "migrations"]  # of layouts; none by themselves
VERSIONS = ["1.30", "1.34"]  # of Kubernetes: the oldest and the newest that we look at
PROGRAMS = Path(sys.executable).parent
SECRETS = {"alarmcast-broker", "alarmcast-database"}  # made by hand, as the kustomizations say


@pytest.fixture(params=LAYOUTS)
def things(request: pytest.FixtureRequest) -> list[Thing]:
    return resolved(FOLDER / request.param)


@pytest.fixture(params=ONE_POD)
def alone(request: pytest.FixtureRequest) -> list[Thing]:
    return resolved(FOLDER / request.param)


def containers(things: list[Thing]) -> list[Thing]:
    return [container for pod in pods(things) for container in pod["containers"]]


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_is_valid_by_kubernetes_own_schemas_and_has_no_unknown_field(
    things: list[Thing], version: str
) -> None:
    for thing in things:
        kubernetes_validate.validate(thing, version, strict=True)


def test_a_field_that_kubernetes_does_not_know_would_be_noticed(things: list[Thing]) -> None:
    service, *_ = of_kind(things, "Service")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(merged(service, {"spec": {"colour": "red"}}), VERSIONS[0], strict=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_kustomize_itself_makes_the_same_of_it_where_it_is_installed(layout: str) -> None:
    if shutil.which("kubectl"):
        made = subprocess.run(
            ["kubectl", "kustomize", FOLDER / layout], capture_output=True, text=True, check=True
        ).stdout
        theirs = [thing for thing in yaml.safe_load_all(made) if thing]
        assert sorted(map(canonical, theirs)) == sorted(map(canonical, resolved(FOLDER / layout)))


def canonical(thing: Thing) -> str:
    return json.dumps(thing, sort_keys=True)


def test_what_the_resolver_does_not_know_it_refuses(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: []\nnamePrefix: x-\n", encoding="utf-8")
    with pytest.raises(NotUnderstood):
        resolved(tmp_path)


def test_a_patch_changes_what_it_names_and_keeps_the_rest() -> None:
    below = {"a": 1, "list": [{"name": "x", "y": 1}, {"name": "z"}], "args": ["serve"]}
    above = {"list": [{"name": "x", "w": 2}, {"name": "new"}], "args": ["migrate"]}
    assert merged(below, above) == {
        "a": 1,
        "list": [{"name": "x", "y": 1, "w": 2}, {"name": "new"}, {"name": "z"}],
        "args": ["migrate"],
    }


def test_every_variable_is_a_setting_and_its_value_is_understood(things: list[Thing]) -> None:
    for container in containers(things):
        given = variables(things, container)
        assert given
        assert unknown_variables(given, agent=False) == []
        plain = {name: value for name, value in given.items() if not name.endswith("_FILE")}
        Settings.model_validate({name.removeprefix("ALARMCAST_").lower(): value for name, value in plain.items()})


def test_an_ingress_is_believed_about_who_asks_and_how_and_nobody_else_is(things: list[Thing]) -> None:
    for container in (one for one in containers(things) if one["args"][0] == "serve"):
        trusted = variables(things, container)["ALARMCAST_TRUSTED_PROXIES"]
        asked = forwarded(trusted, sender="10.244.3.7")
        assert (asked["client"][0], asked["scheme"]) == ("203.0.113.7", "https")
        other = forwarded(trusted, sender="192.168.3.7")
        assert (other["client"][0], other["scheme"]) == ("192.168.3.7", "http")


def forwarded(trusted: str, *, sender: str) -> Scope:
    """Return a request as our server sees it, with what its sender says of who asks."""
    seen: list[Scope] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope)

    async def nothing(*_: Any) -> Any:
        return None

    config = server_config(app, Settings(trusted_proxies=trusted))
    config.load()
    said = [(b"x-forwarded-for", b"203.0.113.7"), (b"x-forwarded-proto", b"https")]
    scope = {"type": "http", "scheme": "http", "client": (sender, 5), "headers": said}
    asyncio.run(config.loaded_app(scope, nothing, nothing))
    return seen[0]


def test_no_variable_comes_from_the_cluster_itself(things: list[Thing]) -> None:
    # A Service called alarmcast would make ALARMCAST_PORT=tcp://…, and the service would refuse to start.
    assert all(pod["enableServiceLinks"] is False for pod in pods(things))


def test_every_file_that_a_variable_names_is_mounted_from_a_secret_that_is_told_of(things: list[Thing]) -> None:
    told = "".join(file.read_text(encoding="utf-8") for file in FOLDER.rglob("kustomization.yaml"))
    for pod in pods(things):
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for container in pod["containers"]:
            mounts = {mount["mountPath"]: volumes.get(mount["name"], {}) for mount in container["volumeMounts"]}
            for value in variables(things, container).values():
                if value.startswith("/"):
                    secret = mounts[str(Path(value).parent)]["secret"]["secretName"]
                    assert secret in SECRETS
                    assert re.search(rf"create secret generic {secret} .*{Path(value).name}", told)


def test_every_pod_is_nobody_confined_and_without_a_key_to_the_cluster(things: list[Thing]) -> None:
    for pod in pods(things):
        context = pod["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"], context["fsGroup"]) == (True, USER, USER)
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_every_container_says_what_it_needs_and_how_much_memory_it_may_take(things: list[Thing]) -> None:
    for container in containers(things):
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]


def test_every_image_is_this_version_of_ours(things: list[Thing]) -> None:
    images = {container["image"] for container in containers(things)}
    assert images == {f"registry.example/alarmcast:{__version__}"}


def test_every_command_is_one_that_the_image_knows(things: list[Thing], dockerfile: Dockerfile) -> None:
    [program] = dockerfile.last("service", "ENTRYPOINT").words()
    for container in containers(things):
        usage = subprocess.run(
            [PROGRAMS / program, *container["args"], "--help"], capture_output=True, text=True, check=False
        )
        assert usage.returncode == 0, usage.stderr


def test_state_lies_on_a_volume_where_the_image_expects_it(alone: list[Thing], dockerfile: Dockerfile) -> None:
    [state] = of_kind(alone, "StatefulSet")
    [claim] = state["spec"]["volumeClaimTemplates"]
    [container] = state["spec"]["template"]["spec"]["containers"]
    [mounted] = [
        mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == claim["metadata"]["name"]
    ]
    assert mounted == dockerfile.last("service", "VOLUME").text
    assert dockerfile.environment("service")["ALARMCAST_DATA_DIR"] == mounted


def test_one_process_writes_because_one_replica_runs(alone: list[Thing]) -> None:
    [state] = of_kind(alone, "StatefulSet")
    assert state["spec"]["replicas"] == 1
    assert not of_kind(alone, "PodDisruptionBudget"), "it could only forbid a node's maintenance"


def test_probes_ask_the_service_s_own_answers_on_its_own_port(things: list[Thing]) -> None:
    serving = [container for container in containers(things) if container["args"][0] == "serve"]
    assert serving
    for container in serving:
        [port] = container["ports"]
        assert port["containerPort"] == Settings.model_fields["port"].default
        asked = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
        assert {name: get["path"] for name, get in asked.items()} == {
            "startup": "/livez",
            "liveness": "/livez",
            "readiness": "/readyz",
        }
        assert {get["port"] for get in asked.values()} == {port["name"]}


def test_whoever_is_selected_is_there(things: list[Thing]) -> None:
    labels = [thing["spec"]["template"]["metadata"]["labels"] for thing in things if pods([thing])]
    selectors: list[dict[str, Any]] = [service["spec"]["selector"] for service in of_kind(things, "Service")]
    selectors += [one["spec"]["podSelector"].get("matchLabels", {}) for one in of_kind(things, "NetworkPolicy")]
    for kind in ("StatefulSet", "Deployment", "PodDisruptionBudget"):
        selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind(things, kind)]
    assert all(any(selector.items() <= one.items() for one in labels) for selector in selectors)
    [service] = [one for one in of_kind(things, "Service") if one["metadata"]["name"] == "alarmcast"]
    assert len([one for one in labels if service["spec"]["selector"].items() <= one.items()]) == 1


def test_nothing_flows_but_what_is_named(things: list[Thing]) -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in of_kind(things, "NetworkPolicy")}
    default = policies.pop("nothing-by-default")
    assert default == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert all(rule.get("from") for policy in policies.values() for rule in policy.get("ingress", []))
    ports = {
        port["port"] for policy in policies.values() for rule in policy.get("egress", []) for port in rule["ports"]
    }
    [settings] = of_kind(things, "ConfigMap")
    wanted = {53, 443, int(settings["data"]["ALARMCAST_BROKER_PORT"])}
    assert ports == wanted | ({5432} if of_kind(things, "Job") else set())


def test_the_migrations_job_brings_an_empty_database_up_to_date_and_ends(postgresql: str, tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text(postgresql, encoding="utf-8")
    secret.chmod(0o440)
    [job] = of_kind(resolved(FOLDER / "overlays/postgresql"), "Job")
    [container] = job["spec"]["template"]["spec"]["containers"]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ALARMCAST_")}
    places = {"ALARMCAST_DATABASE_URL_FILE": str(secret), "ALARMCAST_DATA_DIR": str(tmp_path / "data")}
    assert set(variables([job], container)) == {"ALARMCAST_DATABASE_URL_FILE"}
    for _ in ("empty", "up to date"):
        done = subprocess.run(
            [PROGRAMS / "alarmcast", *container["args"]],
            env=inherited | places,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "The database has the schema of this version.\n"


def test_the_layouts_are_all_there_are() -> None:
    found = {str(file.parent.relative_to(FOLDER)) for file in FOLDER.rglob("kustomization.yaml")}
    assert found == {*LAYOUTS, *PARTS}
