"""The port to a language model: what is asked, who is asked, what is kept, and what is taken for an answer."""
