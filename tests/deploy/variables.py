"""Environment variables of the programs."""

from collections.abc import Iterable

from edge_agent import settings as edge_settings
from service import settings as service_settings
from service.settings import PREFIX


def unknown_variables(names: Iterable[str], *, agent: bool) -> list[str]:
    """Return the variables of ours that are no setting of the program that would read them."""
    reader = edge_settings if agent else service_settings
    prefix = edge_settings.ENV_PREFIX if agent else PREFIX
    fields = [*reader.Settings.model_fields, *(f"{name}_file" for name in reader.secret_names())]
    known = {prefix + name.upper() for name in fields}
    return [name for name in names if name.startswith(PREFIX) and name not in known]
