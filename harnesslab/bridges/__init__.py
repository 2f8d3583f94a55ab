"""A harness in front of an agent that exists: as an endpoint (``harnesslab serve``), and as an environment to train in (``harnesslab.bridge``)."""
