#!/bin/bash
cat > /app/{{SCRIPT}} <<'END'
#!/bin/bash
find "$1" -mindepth 1 -maxdepth 1 {{FIND}} | wc -l
END
chmod +x /app/{{SCRIPT}}
