"""The errors kael raises for bad input and broken rules; nothing else lives here.

KaelError (RuntimeError)
├── KaelValueError (ValueError)   a wrong value or shape
├── KaelIndexError (IndexError)   an index or dim out of range
└── KaelTypeError (TypeError)     an argument of the wrong type
"""


class KaelError(RuntimeError):
    """A rule of the autograd system was broken; the message names the place and the remedy."""


class KaelValueError(KaelError, ValueError):
    """A value or a shape does not fit."""


class KaelIndexError(KaelError, IndexError):
    """An index or a dim is out of range."""


class KaelTypeError(KaelError, TypeError):
    """An argument has the wrong type."""
