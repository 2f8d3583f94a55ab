"""Check each write against the records that were read: only what the policy allows for their status."""

import json

ALLOWED = {
    "cancel_order": ({"pending"}, "order_id"),
    "modify_order": ({"pending"}, "order_id"),
    "return_order": ({"delivered"}, "order_id"),
}
TIMES = 2


def records(text):
    """The JSON objects with a status in a result, also inside others."""
    try:
        waiting = [json.loads(text)]
    except ValueError:
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("status"), str):
                yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def observe(context, observation):
    seen = context["memory"].setdefault("status", {})
    for record in records(observation):
        for key, value in record.items():
            if key.endswith("_id") and isinstance(value, str):
                seen[value] = record["status"]
    return None


def regulate(context, proposal):
    action = proposal["action"]
    if not isinstance(action, dict) or action["name"] not in ALLOWED:
        return None
    allowed, key = ALLOWED[action["name"]]
    number = action["arguments"].get(key)
    memory = context["memory"]
    status = memory.get("status", {}).get(number)
    if status in allowed or memory.get("held", 0) >= TIMES:
        return None
    memory["held"] = memory.get("held", 0) + 1
    if status is None:
        return {"note": f"Look {number} up first: its status is not known.", "withhold": True}
    return {"note": f"{number} is {status}, so {action['name']} is not allowed. Tell the user.", "withhold": True}
