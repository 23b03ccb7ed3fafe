"""Compiled functions over Arrow buffers; see README.md in the folder above."""
