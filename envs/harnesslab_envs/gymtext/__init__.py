"""Gymnasium environments with discrete observations and actions, as text. See README.md."""
