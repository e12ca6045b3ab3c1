"""Inputs of a report: the request, and its vectors and relevance, checked and joined."""
