"""Columns of any table as features: numbers, categories, dates, words and what is missing."""
