"""Playing episodes: the environment protocol, the trusted loop, the runner, records and the failure taxonomy."""
