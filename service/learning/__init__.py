"""Learn arrow, training: the only torch, imported only by the process that trains."""
