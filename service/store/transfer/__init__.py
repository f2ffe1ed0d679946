"""A store copied into another database: it may be cut off at any moment, and ends with a comparison."""
