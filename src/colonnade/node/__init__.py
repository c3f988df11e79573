"""What a machine that takes part is made of: its files, its state, its log; a party's desk, a server's runs."""
