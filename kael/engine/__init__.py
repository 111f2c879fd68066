"""kael.engine."""
