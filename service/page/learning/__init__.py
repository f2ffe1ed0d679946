"""The learning page, part by part."""
