"""The multi-turn tasks of the Berkeley Function Calling Leaderboard. See README.md."""
