"""The alarm catalogue of the simulated fleet."""

from importlib.resources import files


def catalogue_csv() -> str:
    """Return the catalogue as CSV; the targets have an alarm response."""
    return files("edge_agent.simulator").joinpath("catalogue.csv").read_text(encoding="utf-8")
