"""One module a command: OPTIONS, its command line, and run(options), which returns an exit code."""
