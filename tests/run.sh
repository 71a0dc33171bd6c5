#!/bin/sh
# Run the tests in two halves at once: those on the container wait for it most of the time. The
# other half's output comes last, whole.
set -u
cd "$(dirname "$0")/.."
log=.cache/tests-without-container.log
mkdir -p .cache
.venv/bin/python -m pytest --ignore=tests/container "$@" >"$log" 2>&1 &
other=$!
trap 'kill $other 2>/dev/null' INT TERM
.venv/bin/python -m pytest tests/container "$@"
container=$?
wait $other
rest=$?
cat "$log"
[ $container -eq 0 ] && [ $rest -eq 0 ]
