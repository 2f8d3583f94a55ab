"""BabyAI and MiniGrid levels as text. See README.md."""
