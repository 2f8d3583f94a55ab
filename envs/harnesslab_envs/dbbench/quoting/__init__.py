"""Quoting of table and column names in SQL: a kind of intervention."""
