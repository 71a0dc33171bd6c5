"""What holds for every test."""

from hypothesis import settings

# A busy machine must not fail a property: tests do not time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
