"""Gram mode by additive secret shares: keys, encrypted seeds, shares and masked blocks, a comparison."""
