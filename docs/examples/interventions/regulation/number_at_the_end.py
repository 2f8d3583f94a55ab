"""In the last step, answer with the last number that was seen instead of nothing."""

import re

TOOL, ARGUMENT = "answer_action", "answer"
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")


def regulate(context, proposal):
    action = proposal["action"]
    if context["budget"] - context["step"] > 1 or (isinstance(action, dict) and action["name"] == TOOL):
        return None
    if not any(tool["function"]["name"] == TOOL for tool in context["tools"] or ()):
        return None
    if not re.search(r"how many|number of|count|total", context["instruction"], re.IGNORECASE):
        return None
    for text in [context["observation"], *(turn["observation"] for turn in reversed(context["history"]))]:
        numbers = NUMBER.findall(text)
        if numbers:
            return {"action": {"name": TOOL, "arguments": {ARGUMENT: numbers[-1]}}}
    return None
