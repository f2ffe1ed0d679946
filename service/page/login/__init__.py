"""Where strangers become visitors."""
