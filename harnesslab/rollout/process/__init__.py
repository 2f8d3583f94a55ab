"""Environments as child processes: each in its own Python with its own packages, behind the usual protocol.

The child imports this package too, inside a Python that has none of harnesslab's dependencies. Hence this file
imports nothing; :mod:`.frames`, :mod:`.wire`, :mod:`.serve` and :mod:`.bootstrap` use the standard library only.

| module | what |
|---|---|
| ``frames`` | one JSON value as bytes with a length before it |
| ``wire`` | what the two sides say to each other |
| ``bootstrap``, ``serve`` | the child's side |
| ``channel``, ``child`` | the parent's end of one process: deadlines, log, kill |
| ``pool``, ``environment`` | many processes behind one :class:`~harnesslab.rollout.env.Environment` |
| ``folder``, ``venv`` | an environment's folder, and its private Python |
"""
