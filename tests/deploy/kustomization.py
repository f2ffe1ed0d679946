"""Resolves our kustomizations: resources, a namespace, images, and patches merged as Kubernetes merges them."""

from pathlib import Path
from typing import Any

import yaml

from tests.deploy.conftest import REPOSITORY

Thing = dict[str, Any]

KEYS = {"apiVersion", "kind", "namespace", "resources", "images", "patches"}
FOLDER = REPOSITORY / "deploy/kubernetes"

SCALED = "overlays/scaled"
CLUSTER_WIDE = {"Namespace"}


class NotUnderstood(ValueError):
    """A key this resolver has no meaning for; guessing would make the tests lie."""


def resolved(folder: Path) -> list[Thing]:
    """Return every object that ``kubectl apply --kustomize`` would send."""
    wishes = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    if set(wishes) - KEYS:
        raise NotUnderstood(f"{folder}: {sorted(set(wishes) - KEYS)}")
    things: list[Thing] = []
    for name in wishes["resources"]:
        path = folder / name
        things += resolved(path) if path.is_dir() else _documents(path)
    for patch in wishes.get("patches", []):
        for above in _documents(folder / patch["path"]):
            _lay(above, things, patch)
    for thing in things:
        if thing["kind"] not in CLUSTER_WIDE:
            thing["metadata"]["namespace"] = wishes["namespace"]
        for pod in pods([thing]):
            for container in pod["containers"]:
                container["image"] = _renamed(container["image"], wishes.get("images", []))
    return things


def _lay(above: Thing, things: list[Thing], patch: Thing) -> None:
    """Lay a patch over what it is called after, or over everything of the kind that it is aimed at."""
    kind = patch.get("target", {}).get("kind")
    if patch != {"path": patch["path"]} | ({"target": {"kind": kind}} if kind else {}):
        raise NotUnderstood(str(patch))
    for place, below in enumerate(things):
        if kind is not None and below["kind"] == kind:
            named = {"name": below["metadata"]["name"]}
            things[place] = merged(below, above | {"metadata": above["metadata"] | named})
    if kind is None:
        [place] = [place for place, below in enumerate(things) if _name(below) == _name(above)]
        things[place] = merged(things[place], above)


def merged(below: Any, above: Any) -> Any:
    """Merge strategically: mappings key by key, lists of named things by name, everything else replaced."""
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {key: merged(below[key], value) if key in below else value for key, value in above.items()}
    if isinstance(below, list) and isinstance(above, list) and _are_named([*below, *above]):
        named = {one["name"]: one for one in below}
        return [*(merged(named[one["name"]], one) if one["name"] in named else one for one in above),
                *(one for one in below if one["name"] not in {other["name"] for other in above})]  # fmt: skip
    return above


def pods(things: list[Thing]) -> list[Thing]:
    """Return the specification of every pod that comes to be."""
    return [thing["spec"]["template"]["spec"] for thing in things if "template" in thing.get("spec", {})]


def _documents(path: Path) -> list[Thing]:
    return [thing for thing in yaml.safe_load_all(path.read_text(encoding="utf-8")) if thing]


def _name(thing: Thing) -> tuple[str, str]:
    return thing["kind"], thing["metadata"]["name"]


def _are_named(things: list[Any]) -> bool:
    return all(isinstance(one, dict) and "name" in one for one in things)


def _renamed(image: str, wishes: list[Thing]) -> str:
    return next((f"{one['newName']}:{one['newTag']}" for one in wishes if one["name"] == image), image)


def of_kind(things: list[Thing], kind: str) -> list[Thing]:
    return [thing for thing in things if thing["kind"] == kind]


def variables(things: list[Thing], container: Thing) -> dict[str, str]:
    maps = {thing["metadata"]["name"]: thing["data"] for thing in of_kind(things, "ConfigMap")}
    given = [maps[source["configMapRef"]["name"]] for source in container.get("envFrom", [])]
    own = {one["name"]: one["value"] for one in container.get("env", [])}
    return {name: value for values in [*given, own] for name, value in values.items()}
