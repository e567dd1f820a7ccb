"""Carries out an approved plan: claims, effects, progress, verification."""
