#!/bin/bash
cd /app
head -n 1 orders.csv > large.csv
tail -n +2 orders.csv | awk -F, '$3 >= {{LEAST}}' | sort -t, -k3,3nr >> large.csv
