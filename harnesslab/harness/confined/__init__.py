"""Where Python interventions run: a child process for each intervention and episode, which can do next to nothing.

| module | what |
|---|---|
| ``inside`` | the child's side: gives up its rights, loads one file, answers |
| ``syscalls`` | the calls to Linux that it gives up |
| ``walls`` | the command that starts it: bubblewrap where that works |
| ``box`` | the parent's side: start, ask with a deadline, check, kill |
| ``feed`` | of a context, what the child has not been sent yet |
"""
