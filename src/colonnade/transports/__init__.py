"""Transports: one method each, and no knowledge of learning."""
