"""Pure arithmetic on arrays: nothing here knows of parties, messages or files."""
