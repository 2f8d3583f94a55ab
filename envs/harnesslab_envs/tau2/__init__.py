"""Customer service with policies and tools: tau2-bench. See README.md."""
