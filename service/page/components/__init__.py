"""Elements that several pages use."""
