"""kael.ops."""
