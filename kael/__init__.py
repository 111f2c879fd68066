"""kael."""
