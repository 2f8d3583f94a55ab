"""Do not buy before the price and the wanted options were seen; ask again in the same step, then let it pass."""

import re

OPTION = re.compile(r"\b(?:color|size|flavou?r|style): ?([\w -]+?)(?=,|\.|$| and )", re.IGNORECASE)
LIMIT = re.compile(r"(?:lower|less|under|below|cheaper) than \$?([\d.]+)", re.IGNORECASE)
PRICE = re.compile(r"Price: \$([\d,.]*\d)")


def missing(context):
    """What speaks against buying now, in words; empty if nothing does."""
    chosen = {str(turn["action"]).lower() for turn in context["history"] if not turn["invalid"]}
    for option in OPTION.findall(context["instruction"]):
        option = option.strip().lower()
        if f"[{option}]" in context["observation"].lower() and f"click[{option}]" not in chosen:
            return f"the option {option} is wanted and not chosen"
    limit, price = LIMIT.search(context["instruction"]), PRICE.search(context["observation"])
    if limit and price and float(price[1].replace(",", "")) >= float(limit[1]):
        return f"the price is ${price[1]}, and the limit is ${limit[1]}"
    return ""


def regulate(context, proposal):
    if str(proposal["action"]).lower() != "click[buy now]" or context["budget"] - context["step"] <= 1:
        return None
    why = missing(context)
    if not why or context["asked"]:
        return None
    return {"again": f"You are about to buy, but {why}. Reply with the action to do first, or buy all the same."}
