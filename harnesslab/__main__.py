"""``python -m harnesslab``: the command line."""

from harnesslab.cli import main

main()
