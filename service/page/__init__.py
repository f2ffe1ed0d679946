"""The operators' page, on the same app as the API and fed by it."""
