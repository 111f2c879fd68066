"""Looking at a recorded computation: graph, drawings, trace, worked example, anomalies.

It gets tensors, names, recorders and places to print; specs and terminals are not known here.
"""
