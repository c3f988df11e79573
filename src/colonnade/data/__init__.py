"""Tables from arrays, frames and files, and the demo's data set."""
