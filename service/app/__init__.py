"""Composition root: builds every feature, starts and stops threads, serves HTTP, reports health and metrics."""
