"""Several pods for each role: what each does, who reaches it, and that losing one loses nothing."""

from typing import Any

import pytest

from service.settings import Settings
from tests.deploy.kustomization import FOLDER, SCALED, NotUnderstood, Thing, of_kind, pods, resolved, variables
from wire.enums import ProcessRole

NAME, COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"


@pytest.fixture(scope="module")
def things() -> list[Thing]:
    return resolved(FOLDER / SCALED)


@pytest.fixture(scope="module")
def deployments(things: list[Thing]) -> dict[str, Thing]:
    """The Deployments by role."""
    return {one["metadata"]["labels"][COMPONENT]: one["spec"] for one in of_kind(things, "Deployment")}


def labels(deployment: Thing) -> dict[str, str]:
    found: dict[str, str] = deployment["template"]["metadata"]["labels"]
    return found


def chosen(selector: dict[str, Any], deployments: dict[str, Thing]) -> set[str]:
    """Return the roles whose pods a selector of labels picks."""
    return {role for role, one in deployments.items() if selector.items() <= labels(one).items()}


def test_every_role_has_its_pods_and_more_than_one_of_them(deployments: dict[str, Thing]) -> None:
    assert set(deployments) == set(ProcessRole)
    for role, deployment in deployments.items():
        [container] = deployment["template"]["spec"]["containers"]
        program, option, roles = container["args"]
        assert (program, option) == ("serve", "--roles")
        assert Settings(roles=roles, database_url="postgresql+psycopg://").process_roles == {role}
        assert deployment["replicas"] >= 2


def test_every_process_is_on_postgresql_and_shares_no_folder(
    things: list[Thing], deployments: dict[str, Thing]
) -> None:
    assert of_kind(things, "PersistentVolumeClaim") == of_kind(things, "StatefulSet") == []
    for deployment in deployments.values():
        pod = deployment["template"]["spec"]
        [container] = pod["containers"]
        assert "ALARMCAST_DATABASE_URL_FILE" in variables(things, container)
        assert all(set(volume) & {"emptyDir", "secret"} for volume in pod["volumes"])


def test_a_new_version_comes_before_the_old_one_goes_and_nodes_are_emptied_one_by_one(
    things: list[Thing], deployments: dict[str, Thing]
) -> None:
    assert all(one["strategy"]["rollingUpdate"]["maxUnavailable"] == 0 for one in deployments.values())
    budgets = [one["spec"] for one in of_kind(things, "PodDisruptionBudget")]
    assert {budget["maxUnavailable"] for budget in budgets} == {1}
    covered = [chosen(budget["selector"]["matchLabels"], deployments) for budget in budgets]
    assert sorted(covered, key=sorted) == [{"api"}, {"ingest"}, {"worker"}]
    for role, deployment in deployments.items():
        [spread] = deployment["template"]["spec"]["topologySpreadConstraints"]
        assert chosen(spread["labelSelector"]["matchLabels"], deployments) == {role}


def test_people_reach_the_api_and_stay_with_one_pod(things: list[Thing], deployments: dict[str, Thing]) -> None:
    services = {one["metadata"]["name"]: one["spec"] for one in of_kind(things, "Service")}
    api, processes = services.pop("alarmcast"), services.pop("alarmcast-processes")
    assert services == {}
    assert chosen(api["selector"], deployments) == {"api"}
    assert api["sessionAffinity"] == "ClientIP"
    assert chosen(processes["selector"], deployments) == set(ProcessRole)
    assert processes["clusterIP"] == "None"
    [job] = of_kind(things, "Job")
    assert not processes["selector"].items() <= job["spec"]["template"]["metadata"]["labels"].items()


def askers(policy: Thing) -> set[str]:
    """Return by which label somebody is let in; every peer has one."""
    peers = [peer for rule in policy.get("ingress", []) for peer in rule["from"]]
    return {label for peer in peers for kind in peer.values() for label in kind["matchLabels"]}


def test_nobody_asks_an_ingester_or_a_worker_for_more_than_its_figures(
    things: list[Thing], deployments: dict[str, Thing]
) -> None:
    let_in: dict[str, set[str]] = {role: set() for role in deployments}
    sent_to: dict[str, set[int]] = {role: set() for role in deployments}
    for policy in of_kind(things, "NetworkPolicy"):
        for role in chosen(policy["spec"]["podSelector"].get("matchLabels", {}), deployments):
            let_in[role] |= askers(policy["spec"])
            rules = policy["spec"].get("egress", [])
            sent_to[role] |= {port["port"] for rule in rules for port in rule["ports"]}
    assert let_in == {
        "api": {"alarmcast/asks", "alarmcast/scrapes"},
        "ingest": {"alarmcast/scrapes"},
        "worker": {"alarmcast/scrapes"},
    }
    everybody = {53, 8883, 5432}
    assert sent_to == {"api": everybody | {443}, "ingest": everybody, "worker": everybody | {443}}


def test_a_patch_that_is_aimed_at_more_than_a_kind_is_not_understood(tmp_path: Any) -> None:
    (tmp_path / "patch.yaml").write_text("kind: Deployment\nmetadata: {name: x}\n", encoding="utf-8")
    wishes = "namespace: x\nresources: []\npatches: [{path: patch.yaml, target: {kind: Deployment, name: y}}]\n"
    (tmp_path / "kustomization.yaml").write_text(wishes, encoding="utf-8")
    with pytest.raises(NotUnderstood):
        resolved(tmp_path)


def test_a_patch_aimed_at_a_kind_reaches_all_of_it_and_nothing_else(things: list[Thing]) -> None:
    names = [one["metadata"]["name"] for one in things if pods([one])]
    assert sorted(names) == ["alarmcast-api", "alarmcast-ingest", "alarmcast-migrate", "alarmcast-worker"]
