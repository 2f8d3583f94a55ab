"""Plan subgoals from the instruction, show the next one, and carry it out if the model keeps off it."""

import re

PATIENCE = 2  # steps away from the subgoal before its action is forced
STEPS = {
    "heat": ("take", "heat", "put"),
    "cool": ("take", "cool", "put"),
    "clean": ("take", "clean", "put"),
    "put": ("take", "put"),
}


def plan(instruction):
    """[verb, thing] for each subgoal; empty for an instruction that is not understood."""
    found = re.search(r"\b(heat|cool|clean|put)\b (?:some |the |an? )?(\w+)", instruction, re.IGNORECASE)
    return [[verb, found[2].lower()] for verb in STEPS[found[1].lower()]] if found else []


def fits(action, verb, thing):
    return isinstance(action, str) and action.lower().startswith(verb) and thing in action.lower()


def observe(context, observation):
    memory = context["memory"]
    if "left" not in memory:
        memory.update(left=plan(context["instruction"]), off=0)
    turn = context["history"][-1] if context["history"] else None
    done = turn and not turn["invalid"] and "nothing happens" not in observation.lower()
    if done and memory["left"] and fits(turn["action"], *memory["left"][0]):
        memory.update(left=memory["left"][1:], off=0)
    return None


def shape(context, draft):
    left = context["memory"].get("left")
    if not left:
        return None
    return {**draft, "after": [*draft["after"], "Next subgoal: " + " ".join(left[0]) + "."]}


def regulate(context, proposal):
    memory = context["memory"]
    if not memory.get("left") or fits(proposal["action"], *memory["left"][0]):
        return None
    possible = [action for action in context["admissible"] or () if fits(action, *memory["left"][0])]
    if not possible:
        return None  # it is not here: searching is the model's work
    memory["off"] += 1
    return {"action": possible[0]} if memory["off"] > PATIENCE else None
