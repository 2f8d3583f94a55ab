"""A tool of the harness: search what was seen in this episode, also what the request does not show any more."""

TOOL = {
    "type": "function",
    "function": {
        "name": "recall",
        "description": "Search all earlier results of this task for a word. Costs a step.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}


def offer(context, tools):
    return [*tools, TOOL] if len(context["history"]) >= 2 else None


def call(context, call):
    word = str(call["arguments"].get("word", "")).lower()
    lines = [
        f"step {number}: {line.strip()}"
        for number, turn in enumerate(context["history"])
        for line in turn["result"].splitlines()
        if word and word in line.lower()
    ]
    return "\n".join(lines[-10:]) or "Nothing that was seen mentions it."
