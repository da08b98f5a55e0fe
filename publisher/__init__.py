"""What moves by itself: the relay from the outbox to the broker, and the sweeper that finds what is stuck."""
