"""What should be, derived from the knobs: values, texts, command lines. No look at a host."""
