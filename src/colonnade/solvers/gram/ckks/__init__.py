"""Gram mode by homomorphic encryption: each pair of parties multiplies its columns under CKKS."""
