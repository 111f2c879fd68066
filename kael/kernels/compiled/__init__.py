"""The compiled kernels: the only place that imports numba. `kael.kernels.tiers` imports it late.

Each function has the name and the arguments of its NumPy twin, and returns None for arrays that
it leaves to the twin (another dtype, a dim that is not last).
"""
