#!/bin/bash
pip install -q pytest >&2
if pytest -rA /tests/test_outputs.py >&2; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
