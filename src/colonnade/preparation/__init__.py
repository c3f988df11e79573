"""How the columns of a table as it is become numbers: what its owner asks for, what is learned, how it is applied."""
