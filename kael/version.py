"""The version of kael, read by the build and by `kael --version`."""

__version__ = "0.1.0"
