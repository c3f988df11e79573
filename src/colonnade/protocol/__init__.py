"""The exchange itself, without I/O: codec, party session, policy, the hello round, and the conductor of scripts."""
