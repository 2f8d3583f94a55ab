#!/bin/bash
cd /app
find {{FOLDER}} -name '*.txt' -exec grep -ohE '[A-Za-z0-9._-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+' {} + | tr A-Z a-z | sort -u > addresses.txt
