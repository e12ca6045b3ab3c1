"""Measured upgrades of real embedding models: reports of ``bench upgrade`` beside the truth."""
