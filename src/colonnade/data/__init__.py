"""Tables from arrays, frames, files and databases."""
