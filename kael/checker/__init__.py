"""kael.checker."""
