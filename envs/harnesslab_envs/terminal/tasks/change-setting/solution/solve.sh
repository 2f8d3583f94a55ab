#!/bin/bash
find /app/{{ROOT}} -name '*.ini' -exec sed -i 's/^{{KEY}} = .*/{{KEY}} = {{NEW}}/' {} +
