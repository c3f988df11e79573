"""Tables and figures, made from stored results only."""
