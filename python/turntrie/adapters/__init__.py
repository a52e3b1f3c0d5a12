"""Functions with the signatures of the systems that they replace one function of.

A module a system, imported only by its name (`from turntrie.adapters import slime`), and none of them imports the
system it is for. Each function returns what the system's own one returns on the same tokenizer, messages and keywords:
ids, types and errors. docs/adapters/ says for each system what to replace and how to go back.
"""
