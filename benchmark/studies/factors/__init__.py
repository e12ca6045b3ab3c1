"""Factors: which settings decide what a method keeps of the upgrade, by an additive model."""
