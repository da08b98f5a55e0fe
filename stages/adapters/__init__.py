"""What reads documents: each tool behind an adapter that maps its exceptions in one place."""
