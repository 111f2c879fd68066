"""The command line around kael: options, exit codes, streams and reporters; no mathematics."""
