"""Operators that compare rows of the whole dataset; see README.md in the folder above."""
