"""What this API promises beyond what Schemathesis checks by itself, and a count of the answers by status.

Loaded by SCHEMATHESIS_HOOKS; the counts are written to the file that STATUSES_FILE names.
"""

import atexit
import collections
import json
import os

import schemathesis

# Headers of HTTP itself or of every response (contract: envelope), which the document does not list per
# operation.
GENERAL = {
    "date", "connection", "keep-alive", "content-type", "content-length", "vary",
    "cache-control", "content-security-policy", "referrer-policy", "strict-transport-security", "x-content-type-options", "x-frame-options",
    "access-control-allow-origin", "access-control-expose-headers",
}
# A request that the document allows may be refused because of the state of the bank, but never for its form.
OF_FORM = {"validation_failed", "unknown_field", "unknown_parameter", "malformed_json"}
# Rules of form that a schema cannot express, because they depend on the stored client, the time, the number of the
# caller's webhooks, or another field.
BEYOND_SCHEMA = {
    ("update_client", "ussd_phone_number"), ("update_client", "ussd_status"), ("update_client", "company_name"),
    ("update_client", "registration_number"), ("update_client", "first_name"), ("update_client", "last_name"),
    ("create_api_key", "expires_at"), ("create_api_key", "scopes"), ("open_account", "account_number"),
    ("get_posting_statistics", "from"), ("create_webhook", ""),
}
# These depend on tables (Unicode, domain names, numbering plans), on another parameter, or on the time.
RULES_BEYOND_SCHEMA = (
    "code points that are no characters", "must have a visible character", "must not be before", "in the future",
    "must be an e-mail address", "must not contain invisible", "must have joiners", "must not contain tag", "numbering plan",
)
INSIDE = ("node_modules", "node:internal", "    at ", "TypeError", "kafkajs", "lossless", "insert into", "violates", "[object Object]")

statuses = collections.Counter()


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Enumerations of responses are open for callers (contract: envelope-20); here, this bank must keep to its lists."""
    close(raw_schema)


def close(part):
    if isinstance(part, list):
        for one in part:
            close(one)
    if not isinstance(part, dict):
        return
    known = part.get("x-extensible-enum")
    if isinstance(known, list):
        part["enum"] = known + ([None] if "null" in part.get("type", []) else [])
    # The codes of a response are the names of its examples.
    examples = part.get("examples")
    codes = [name for name, example in examples.items() if "$ref" in example] if isinstance(examples, dict) else []
    if codes:
        part["schema"] = {"allOf": [part["schema"], {"properties": {"code": {"enum": codes}}}]}
    for one in part.values():
        close(one)


@schemathesis.hook
def after_call(context, case, response):
    statuses[response.status_code] += 1


@atexit.register
def write_statuses():
    with open(os.environ["STATUSES_FILE"], "w") as file:
        json.dump(statuses, file)


@schemathesis.check
def documented_headers_only(ctx, response, case):
    """Every header of a documented answer is in the document."""
    answer = case.operation.definition.raw["responses"].get(str(response.status_code))
    if answer is None:
        return
    if "$ref" in answer:
        answer = case.operation.schema.raw_schema["components"]["responses"][answer["$ref"].rsplit("/", 1)[1]]
    unknown = {name.lower() for name in response.headers} - GENERAL - {name.lower() for name in answer.get("headers", {})}
    assert not unknown, f"headers that the document does not know: {sorted(unknown)}"


@schemathesis.check
def valid_requests_have_a_good_form(ctx, response, case):
    """Instead of positive_data_acceptance, which cannot know that an account is frozen."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 400:
        return
    body = response.json()
    operation = case.operation.definition.raw["operationId"]
    violations = body.get("errors") or [{"field": "", "code": body["code"], "message": body["message"]}]
    of_form = [
        violation
        for violation in violations
        if violation["code"] in OF_FORM
        and (operation, violation["field"]) not in BEYOND_SCHEMA
        and not any(rule in violation["message"] for rule in RULES_BEYOND_SCHEMA)
    ]
    assert not of_form, f"refused for its form: {of_form}"


@schemathesis.check
def nothing_of_the_inside(ctx, response, case):
    """No error shows text of drivers, libraries or stacks."""
    if response.status_code < 400:
        return
    text = response.content.decode()
    shown = [word for word in INSIDE if word in text]
    assert not shown, f"an error shows {shown}"
