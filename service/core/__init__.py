"""The pure half of the second arrow, and the words both arrows use."""
