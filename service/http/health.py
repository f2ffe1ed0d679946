"""How the service is: what works, what does not, and what has been counted."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Health:
    """``errors`` gives the reason of each component that is not well; empty means ready."""

    errors: dict[str, str]
    counts: dict[str, int]
    model_version: str | None
    warnings: dict[str, str] = field(default_factory=dict)  # worth a look, and no reason to be unready
    parts: tuple[str, ...] = ()  # all that were asked

    @property
    def ready(self) -> bool:
        """Whether events can be taken and forecasts given."""
        return not self.errors
