"""kael.specs."""
