"""What an owner wants to know of a table before a party starts with it; nothing is sent."""
