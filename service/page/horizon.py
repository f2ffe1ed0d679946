"""The length of the forecasts, for headings."""

from alarmcast import AlarmcastError
from service.page.layout import PageContext

_CACHE_TTL_S = 600.0
DEFAULT_HOURS = 8.0


async def horizon_hours(context: PageContext) -> float | None:
    """Return the length of the forecasts in hours, or None without a forecast."""
    return await context.cache.get_or_fetch("horizon", lambda: _fetch(context), seconds=_CACHE_TTL_S)


async def _fetch(context: PageContext) -> float | None:
    try:
        cards = (await context.fleet.snapshot())["cards"]
        card = next((card for card in cards if card["likely"]), None)
        if card is None:
            return None
        forecast = await context.client.forecasts.get(f"{card['site']}/{card['machine']}")
    except AlarmcastError:
        return None
    return round((forecast.horizon_end - forecast.as_of).total_seconds() / 3600, 1)
