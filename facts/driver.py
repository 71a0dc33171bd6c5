"""Which packages of the NVIDIA driver are installed, and which of them are held."""

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class DriverPackages(FactBase[dict[str, bool]]):
    """Installed packages whose name matches `pattern`, each with whether it is held."""

    def command(self, pattern: str) -> StringCommand:
        return program("driver.py", pattern)

    def process(self, output: list[str]) -> dict[str, bool]:
        held: dict[str, bool] = answer(output)
        return held
