"""The paper's comparison as a command: which strategy and how much memory suit a fleet's own logs."""
