"""Which of the container's cases every test run takes, and which `make test-thorough` adds.

A case that breaks a converged host takes seconds to named and mended, and a minute where the server
has to start again. The default run takes a few of each kind, so that it stays below half an hour.
"""

# By file: the parameters (or, without parameters, the tests) that the default run takes.
DEFAULT = {
    "test_bake.py": (),
    "test_bench.py": (),
    "test_drift.py": (
        "package purged",
        "configuration given away",
        "tree edited",
        "patch reverted",
        "locked distribution removed",
        "library deleted",
        "measuring program edited",
        "smoke record deleted",
        "an operator's own file",
        "a distribution of the operator's",
        "test_two_drifts_at_once_are_both_named_and_mended",
    ),
    "test_drift_prerequisites.py": (
        "test_a_second_run_changes_nothing",
        "test_the_installed_nvcc_compiles_for_the_t4g",
        "test_apt_knows_the_repository_once_and_trusts_its_signature",
        "a second list with another key",
        "dpkg interrupted",
        "nvcc truncated",
        "rustc deleted",
        "account can log in",
        "swap file readable",
        "test_a_toolkit_that_brings_a_driver_is_refused_in_the_dry_run_too",
        "test_a_lock_of_another_process_is_waited_for",
        "somebody else holds it",
    ),
    "test_failed_runs.py": (),
    "test_leak.py": ("test_a_secret_is_found_in_hex_and_base64_wherever_it_stands",),
    "test_prewarm.py": (),
    "test_recovery.py": (),
    "test_runtime.py": (),
    "test_secret.py": (
        "test_the_first_run_does_what_was_foretold_and_the_second_nothing",
        "test_the_token_is_roots_alone_and_comes_again_at_every_boot",
        "token file readable by others",
        "token unit masked",
        "key emptied",
        "test_a_key_is_rotated_by_its_generation_alone",
        "test_a_fetch_that_fails_names_the_remedy_and_leaves_no_token",
        "it was fetched",
    ),
    "test_service.py": (
        "unit edited",
        "everything",
    ),
}


def is_thorough(file: str, name: str) -> bool:
    """Return whether a test, by its name such as test_x[some case], is left to the long run."""
    chosen = DEFAULT.get(file)
    case = name.partition("[")[2].removesuffix("]") or name
    return chosen is not None and case not in chosen
