#!/bin/bash
cat > /app/{{FILE}} <<'END'
{{FIRST}}
{{SECOND}}
END
