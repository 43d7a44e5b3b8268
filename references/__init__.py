"""Independent references: general solvers and the papers' formulas in NumPy, which know nothing of the core.

Tests and the study `agreement` compare the library with them.
"""
