"""The alarm texts of the simulated fleet, for a service that is to show more than numbers."""

from importlib.resources import files


def catalogue_csv() -> str:
    """Return the catalogue as CSV with the header ``code,text,severity,target``; one line per code."""
    return files("edge_agent.simulator").joinpath("catalogue.csv").read_text(encoding="utf-8")
