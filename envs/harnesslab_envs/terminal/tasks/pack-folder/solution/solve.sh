#!/bin/bash
cd /app/data
tar -czf ../{{ARCHIVE}}.tar.gz *.{{ENDING}}
