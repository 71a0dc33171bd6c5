"""What a failed call to AWS says to a person: which call, why, and what to do; pure."""

_ALLOW = "Allow {action} for these credentials (the README lists the policy)."
_LOG_IN = "Log in again: these credentials have expired."
_KEYS = "Check the credentials (and this machine's clock): AWS does not accept them."
_NETWORK = "Check the network, and the region (knob ssm_region)."

# By AWS's code, or the name of botocore's exception.
_REMEDIES = {
    "AccessDeniedException": _ALLOW,
    "UnauthorizedOperation": _ALLOW,
    "TargetNotConnected": "Check that the instance runs, that its agent is up and registered in "
    "this region (instance role AmazonSSMManagedInstanceCore), and that it reaches port 443.",
    "InvalidInstanceId": "Check the id and the region, and that the agent is online there.",
    "InvalidDocument": "Check the document's name in this region (knob ssm_document).",
    "ExpiredTokenException": _LOG_IN,
    "ExpiredToken": _LOG_IN,
    "RequestExpired": _LOG_IN,
    "UnauthorizedSSOTokenError": _LOG_IN,
    "SSOTokenLoadError": _LOG_IN,
    "TokenRetrievalError": _LOG_IN,
    "UnrecognizedClientException": _KEYS,
    "InvalidClientTokenId": _KEYS,
    "InvalidSignatureException": _KEYS,
    "SignatureDoesNotMatch": _KEYS,
    "AuthFailure": _KEYS,
    "NoCredentialsError": "Set AWS_PROFILE or the knob ssm_profile, or log in.",
    "PartialCredentialsError": "Set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither.",
    "CredentialRetrievalError": "Check the profile (AWS_PROFILE, knob ssm_profile), or log in.",
    "NoRegionError": "Set AWS_DEFAULT_REGION or the knob ssm_region.",
    "InvalidRegionError": "Check AWS_DEFAULT_REGION or the knob ssm_region.",
    "ProfileNotFound": "Check the knob ssm_profile and ~/.aws/config.",
    "ConfigParseError": "Mend ~/.aws/config.",
    "EndpointConnectionError": _NETWORK,
    "ConnectTimeoutError": _NETWORK,
    "ReadTimeoutError": "The service took the call and did not answer: try again later.",
    "ProxyConnectionError": "Check the proxy that https_proxy names.",
    "SSLError": "Check AWS_CA_BUNDLE, and whether a proxy answers in the service's place.",
    "ValueError": "Check AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_SSM.",  # botocore's of an endpoint
}


def code_of(error: Exception) -> str:
    """Return AWS's code for an error, or the name of botocore's exception."""
    return str(_answered(error).get("Code") or type(error).__name__)


def explain(service: str, action: str, error: Exception) -> str:
    """Return what failed, why, and what to do; `action` as boto3 spells it."""
    name = f"{service}:{''.join(word.capitalize() for word in action.split('_'))}"
    code, answered = code_of(error), _answered(error)
    said = f"{code}: {answered.get('Message') or 'no more was said'}" if answered else str(error)
    remedy = _REMEDIES.get(code, "").format(action=name)
    return f"{name} failed: {said.rstrip('.')}. {remedy}".rstrip()


def _answered(error: Exception) -> dict[str, str]:
    """Return Code and Message of an error that AWS answered with; nothing of another."""
    response = getattr(error, "response", None) or {}
    found: dict[str, str] = response.get("Error") or {}
    return found
