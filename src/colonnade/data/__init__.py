"""Tables from arrays, frames and files."""
