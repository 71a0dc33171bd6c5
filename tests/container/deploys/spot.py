"""The look-out for spot interruptions alone."""

from pyinfra import host

from operations import filesystem, spot
from operations.programs import PROGRAMS

server_unit = host.data.server_unit or None
filesystem.present(
    name="files", entries=[filesystem.Directory(PROGRAMS), *spot.entries(server_unit)]
)
spot.watched(name="timer", server_unit=server_unit)
