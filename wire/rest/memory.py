"""What replay keeps of every machine, and how balanced it is."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from wire.timestamps import UtcDatetime


class MachineMemory(BaseModel):
    """One machine's share."""

    machine: str = Field(description="As site/machine.")
    replayed: int = Field(description="Windows that are learned again with every new machine.")
    held_out: int = Field(description="Windows that are never learned from; probabilities are checked by them.")


class CodeMemory(BaseModel):
    """One label."""

    code: int
    text: str = Field(description="What the code means.")
    windows: int = Field(description="Replayed windows in which this alarm came.")
    offered: int | None = Field(description="Windows in which it came before any was dropped; null if not kept.")


class VersionMemory(BaseModel):
    """How balanced a version's memory was."""

    version: str
    created_at: UtcDatetime
    machines: int
    windows: int = Field(description="Replayed and held out.")
    kl_to_uniform: float | None = Field(description="KL divergence of its labels to all labels alike, in nats.")
    kl_offered: float | None = Field(description="The same of all windows that it was chosen from.")


_EXAMPLE: dict[str, Any] = {
    "version": "v2",
    "created_at": "2026-11-16T08:00:00.000Z",
    "machines": 2,
    "windows": 2000,
    "kl_to_uniform": 0.31,
    "kl_offered": 0.94,
}


class MemoryView(BaseModel):
    """A version's memory by machine and by label; without a version there is none yet."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "version": "v2",
                    "kl_to_uniform": 0.31,
                    "kl_offered": 0.94,
                    "machines": [{"machine": "padova/filler-1", "replayed": 900, "held_out": 100}],
                    "codes": [{"code": 139, "text": "Film torn", "windows": 212, "offered": 1804}],
                    "versions": [_EXAMPLE | {"version": "v1", "machines": 1, "kl_to_uniform": 0.27}, _EXAMPLE],
                }
            ]
        }
    )

    version: str | None = Field(
        default=None, description="Whose memory it is: the one that serves, unless another is asked for."
    )
    kl_to_uniform: float | None = Field(
        default=None, description="Nought if every label came in as many windows; in nats."
    )
    kl_offered: float | None = Field(
        default=None, description="What a fair draw from the same windows would have had."
    )
    machines: list[MachineMemory] = Field(default=[], description="Oldest first.")
    codes: list[CodeMemory] = Field(default=[], description="Most frequent first.")
    versions: list[VersionMemory] = Field(
        default=[], description="This version and those it descends from, oldest first."
    )
