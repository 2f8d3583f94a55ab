"""Child processes of ours: what environments in their own process and confined interventions have in common.

| module | what |
|---|---|
| ``frames`` | one JSON value as bytes with a length before it |
| ``channel`` | the parent's end of one process: deadlines, log |
| ``group`` | which variables a process gets, and how it ends |

Standard library only: children import parts of it in a Python that has nothing else.
"""
