"""What is run when the table of versions changes: fetch released sources, lock, prove."""
