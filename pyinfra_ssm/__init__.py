"""pyinfra over AWS Systems Manager; see README.md. pyinfra finds it by its entry point."""
