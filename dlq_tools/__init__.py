"""What an operator does with dead letters: look, bring back, discard; every action with who and why."""
