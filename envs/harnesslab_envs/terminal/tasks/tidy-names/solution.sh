#!/bin/bash
cd /app/photos
for file in *.{{OLD}}; do
    name=${file%.{{OLD}}}
    mv "$file" "$(echo "$name" | tr 'A-Z ' 'a-z-').{{NEW}}"
done
