"""What bake.py does on the host, before EC2 copies its disk."""

from desired import server_unit
from operations import bake

bake.sealed(
    name="Ensure nothing of the host itself would travel",
    service=server_unit.UNIT,
)
