"""Gram mode by additive secret shares of all rows, window by window: no more than a window is held anywhere."""
