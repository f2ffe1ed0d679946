"""The operators' pages, a client of the REST API."""
