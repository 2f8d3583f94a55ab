"""ALFWorld: household tasks in text, the official games."""
