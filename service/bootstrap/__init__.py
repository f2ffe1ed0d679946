"""The only place that builds objects: settings in, a running service or an open store out."""
