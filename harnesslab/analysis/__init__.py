"""Looking at results: tables, frames, statistics, plots. Reads records and verdicts, and writes nothing to a lab."""
