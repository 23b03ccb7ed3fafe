"""Readers: files and datasets -> rows with an id, their text, and where they came from."""
