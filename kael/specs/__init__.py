"""Specs: the expression language, the YAML and Python loaders, targets, and running a spec.

`model.py` says what a spec is, `targets.py` leads from a command line to specs, `expression.py` is
the way into the language. Terminals and formats are not known here.
"""
