"""The secret stage alone: the token's unit, the token, and the server's API key."""

from pyinfra import host

from operations import filesystem, secret
from operations.programs import PROGRAMS

data = host.data.dict()
source = None
if data["secret_id"]:
    source = secret.TokenSource(data["region"], data["secret_id"], data["keep_last"])

filesystem.present(
    name="unit", entries=[filesystem.Directory(PROGRAMS), *secret.token_entries(source)]
)
if source:
    secret.token_fetched(name="token", source=source)
else:
    secret.token_unit_gone(name="no token")
secret.api_key(name="key", path=data["api_key_file"], generation=data["api_key_generation"])
