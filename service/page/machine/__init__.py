"""One machine: what it will raise next, how sure that is, why, and whether it was right so far."""
