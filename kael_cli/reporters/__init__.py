"""One module a format: results in, text out; no reporter computes anything."""
