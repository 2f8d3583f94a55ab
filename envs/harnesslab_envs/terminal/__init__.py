"""Tasks in the Terminal-Bench formats, on a confined machine without Docker."""
