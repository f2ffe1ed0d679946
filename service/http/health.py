"""The health of the service."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Health:
    """``errors`` by component; the service is ready if there are none."""

    errors: dict[str, str]
    counts: dict[str, int]
    model_version: str | None
    warnings: dict[str, str] = field(default_factory=dict)  # no reason to be unready
    parts: tuple[str, ...] = ()  # all components that were checked

    @property
    def ready(self) -> bool:
        """Whether events can be stored and forecasts served."""
        return not self.errors
