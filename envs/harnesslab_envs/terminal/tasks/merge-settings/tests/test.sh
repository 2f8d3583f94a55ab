#!/bin/bash
mkdir -p /logs/verifier
if python3 -m pytest -q /tests/test_outputs.py; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
