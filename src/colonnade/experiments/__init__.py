"""Experiments: from data sets to stored results. Nothing here is an option of the library."""
