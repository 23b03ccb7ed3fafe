"""Headrace: training-data pipelines over versioned Lance datasets."""
