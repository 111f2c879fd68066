"""kael.kernels."""
