"""kael_cli."""
