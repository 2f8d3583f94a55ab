"""Office work with tools, and texts that try to lead the agent astray: AgentDojo. See README.md."""
