"""Pages made of runs, for people who do not read terminals."""
