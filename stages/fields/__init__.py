"""From pages to what the client asked for: clean text, a summary, an invoice's or a contract's fields."""
