"""Operators on the text of a document; see README.md in the folder above."""
