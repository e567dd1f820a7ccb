"""A plugin of pytest: hypothesis draws the same examples each time, keeps none, and shrinks none."""

from hypothesis import Phase, settings

settings.register_profile("mutants", database=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
settings.load_profile("mutants")
