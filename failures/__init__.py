"""Why a build or a server failed, and what to do: the known failures, and how a log is read."""
