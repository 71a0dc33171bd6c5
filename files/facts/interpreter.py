"""Print what is installed in the interpreter that runs this, and its marker environment."""

import importlib.metadata as metadata
import json
import os
import platform
import re
import sys


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def implementation_version():
    info = sys.implementation.version
    return f"{info.major}.{info.minor}.{info.micro}"


# The environment in which requirement markers are judged (PEP 508), where the interpreter lives.
ENVIRONMENT = {
    "implementation_name": sys.implementation.name,
    "implementation_version": implementation_version(),
    "os_name": os.name,
    "platform_machine": platform.machine(),
    "platform_python_implementation": platform.python_implementation(),
    "platform_release": platform.release(),
    "platform_system": platform.system(),
    "platform_version": platform.version(),
    "python_full_version": platform.python_version(),
    "python_version": ".".join(platform.python_version_tuple()[:2]),
    "sys_platform": sys.platform,
}
# Two of one name are left by a broken install; the first found is the one that is imported.
INSTALLED: dict[str, str] = {}
for distribution in metadata.distributions():
    name = distribution.metadata["Name"]
    if name:
        INSTALLED.setdefault(canonical(name), distribution.version)
print(json.dumps({"environment": ENVIRONMENT, "installed": INSTALLED}))
