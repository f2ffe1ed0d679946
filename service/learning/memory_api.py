"""The memory: what replay keeps of every machine and of every label, and how balanced it is."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from service.forecasts.version import Version
from service.http.problems import responses
from service.learning.versions_api import VERSION_PATTERN, lineage, version_number
from service.machines.catalogue import CatalogueEntry, unknown_code
from wire.rest.memory import CodeMemory, MachineMemory, MemoryView, VersionMemory

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of the memory."""
    routes = APIRouter(prefix="/v1/memory", tags=["learning"])

    @routes.get("", responses=responses(404, 422))
    def get_memory(
        version: Annotated[
            str | None, Query(pattern=VERSION_PATTERN, description="Of this version; of the one that serves.")
        ] = None,
    ) -> MemoryView:
        """What a version remembers: by machine, by label, and how far its labels are from all alike."""
        known = parts.versions.champion() if version is None else parts.versions.get(version_number(version))
        if known is None:
            return MemoryView(
                version=None, kl_to_uniform=None, kl_offered=None, machines=[], codes=[], versions=[]
            )
        told = _told(known)
        line = lineage(known, {one.id: one for one in parts.versions.all()})
        return MemoryView(
            version=known.name,
            kl_to_uniform=told.get("kl_to_uniform"),
            kl_offered=told.get("kl_offered"),
            machines=[MachineMemory(machine=name, **kept) for name, kept in _machines(told).items()],
            codes=_codes(told, parts.catalogue.entries()),
            versions=[_version(one) for one in line],
        )

    return routes


def _told(version: Version) -> dict[str, Any]:
    """Return what a version's report says of its memory; one that was learned elsewhere says nothing."""
    told: dict[str, Any] = version.report.get("memory", {})
    return told


def _machines(told: dict[str, Any]) -> dict[str, dict[str, int]]:
    machines: dict[str, dict[str, int]] = told.get("by_machine", {})
    return machines


def _codes(told: dict[str, Any], entries: dict[int, CatalogueEntry]) -> list[CodeMemory]:
    offered = told.get("offered_by_code", {})
    codes = [
        CodeMemory(
            code=int(code),
            text=(entries.get(int(code)) or unknown_code(int(code))).text,
            windows=count,
            offered=offered.get(code),
        )
        for code, count in told.get("by_code", {}).items()
    ]
    return sorted(codes, key=lambda one: (-one.windows, one.code))


def _version(version: Version) -> VersionMemory:
    told = _told(version)
    kept = _machines(told)
    return VersionMemory(
        version=version.name,
        created_at=version.created_at,
        machines=len(kept),
        windows=sum(sum(share.values()) for share in kept.values()),
        kl_to_uniform=told.get("kl_to_uniform"),
        kl_offered=told.get("kl_offered"),
    )
