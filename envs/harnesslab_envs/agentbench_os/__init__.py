"""AgentBench OS: questions about a Linux system and changes of it, without Docker."""
