"""kael.inspect."""
