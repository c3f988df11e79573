"""What keeps a secret from the server: keys of parties, masks that cancel, signatures. Phases above are built of it."""
