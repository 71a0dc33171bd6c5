"""Why a build, a download or a server failed: the known failures, and how a log is read."""
