"""python -m pyinfra_ssm.emulator: see --help."""

import sys

from pyinfra_ssm.emulator.command_line import main

sys.exit(main())
