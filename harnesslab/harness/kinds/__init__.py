"""The built-in kinds, one module each; :func:`harnesslab.harness.kind.known_kinds` imports them all."""
