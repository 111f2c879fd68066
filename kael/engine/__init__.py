"""The autograd engine: nodes and edges, recording, grad mode, the backward walk, functions.

Which operations exist is not known here; an operation hands the engine its formulas.
"""
