"""The execution of an approved plan: claims, effects, progress, verification."""
