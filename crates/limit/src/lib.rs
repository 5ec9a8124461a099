//! Budgets per address prefix and in total, in bounded memory.
