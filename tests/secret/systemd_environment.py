"""How systemd reads an EnvironmentFile: a port of parse_env_file_internal() of its 252.

https://github.com/systemd/systemd/blob/v252/src/basic/env-file.c, state by state, so that a
property test can try thousands of values; tests/container has the same against systemd itself.
"""

COMMENTS = "#;"
NEWLINE = "\n\r"
WHITESPACE = " \t\n\r"
NEEDS_ESCAPE = '"\\`$'


class _Reader:
    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.key = self.value = ""
        self.kept = 0  # length of the value up to which blanks at its end are meant

    def read(self, text: str) -> dict[str, str]:
        state = self.before_key
        for character in text:
            state = state(character)
        if state not in (self.before_key, self.in_key, self.comment, self.comment_escape):
            self.push()
        return self.found

    def push(self) -> None:
        kept = self.value[: self.kept] + self.value[self.kept :].rstrip(WHITESPACE)
        self.found[self.key.rstrip(WHITESPACE)] = kept
        self.key = self.value = ""
        self.kept = 0

    def keep(self, text: str) -> None:
        self.value += text
        self.kept = len(self.value)

    def before_key(self, character):
        if character in COMMENTS:
            return self.comment
        if character in WHITESPACE:
            return self.before_key
        self.key = character
        return self.in_key

    def in_key(self, character):
        if character in NEWLINE:
            return self.before_key
        if character == "=":
            return self.before_value
        self.key += character
        return self.in_key

    def before_value(self, character):
        if character in NEWLINE:
            self.push()
            return self.before_key
        if character == "'":
            return self.single_quoted
        if character == '"':
            return self.double_quoted
        if character == "\\":
            return self.escape
        if character in WHITESPACE:
            return self.before_value
        self.value += character
        return self.in_value

    def in_value(self, character):
        if character in NEWLINE:
            self.push()
            return self.before_key
        if character == "\\":
            return self.escape
        self.value += character
        return self.in_value

    def escape(self, character):
        if character not in NEWLINE:
            self.keep(character)
        return self.in_value

    def single_quoted(self, character):
        if character == "'":
            return self.before_value
        self.keep(character)
        return self.single_quoted

    def double_quoted(self, character):
        if character == '"':
            return self.before_value
        if character == "\\":
            return self.double_quoted_escape
        self.keep(character)
        return self.double_quoted

    def double_quoted_escape(self, character):
        if character in NEEDS_ESCAPE:
            self.keep(character)
        elif character != "\n":
            self.keep("\\" + character)
        return self.double_quoted

    def comment(self, character):
        if character == "\\":
            return self.comment_escape
        return self.before_key if character in NEWLINE else self.comment

    def comment_escape(self, character):
        return self.comment


def parse(text: str) -> dict[str, str]:
    """Return the variables that a unit with this file would get."""
    return _Reader().read(text)
