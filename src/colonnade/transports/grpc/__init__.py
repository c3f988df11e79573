"""gRPC as the carrier: one stream a party, with mutual TLS."""
