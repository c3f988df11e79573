"""The command `colonnade`: one subcommand a file. Each parses, calls the library, prints."""
