"""Environments as child processes: each in its own Python with its own packages, behind the usual protocol.

The child imports this package too, inside a Python that has none of harnesslab's dependencies. Hence this file
imports nothing; :mod:`.wire`, :mod:`.serve`, :mod:`.bootstrap` and :mod:`harnesslab.subproc.frames` use the standard
library only.

| module | what |
|---|---|
| ``wire`` | what the two sides say to each other |
| ``bootstrap``, ``serve`` | the child's side |
| ``child`` | the parent's end of one process: start, ask, kill |
| ``pool``, ``environment`` | many processes behind one :class:`~harnesslab.rollout.env.Environment` |
| ``folder``, ``venv`` | an environment's folder, and its private Python |
"""
