"""From stored events to a forecast: model versions, cache, scheduler, publishing, explanation, fleet overview."""
