"""The live board: a small web page for the people who run a federation, or a party."""
