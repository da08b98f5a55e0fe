"""What Docstage says to others: messages, queues and results as versioned contracts."""
