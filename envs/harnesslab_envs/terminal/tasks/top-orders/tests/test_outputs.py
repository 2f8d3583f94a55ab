import csv
from pathlib import Path

ORDERS = [row.split(",") for row in """{{ROWS}}""".splitlines()]


def test_the_large_orders_are_sorted():
    with Path("/app/large.csv").open(newline="") as stream:
        header, *rows = [row for row in csv.reader(stream) if row]
    wanted = sorted((row for row in ORDERS if int(row[2]) >= {{LEAST}}), key=lambda row: -int(row[2]))
    assert header == ["order", "customer", "amount"]
    assert rows == wanted


def test_the_orders_were_left_alone():
    assert Path("/app/orders.csv").read_text().splitlines()[1:] == [",".join(row) for row in ORDERS]
