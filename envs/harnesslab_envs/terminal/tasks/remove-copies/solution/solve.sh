#!/bin/bash
cd /app/{{FOLDER}}
sha256sum * | sort -k2 | awk 'seen[$1]++ { print $2 }' | sort > ../deleted.txt
xargs rm -- < ../deleted.txt
