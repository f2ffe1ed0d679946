"""The use cases, in the order of the arrows; they know the core, the forecasting arithmetic and ports only."""
