"""``python -m colonnade``: the command, where its script is not on the path."""

from colonnade.cli.main import main

if __name__ == "__main__":
    main()
