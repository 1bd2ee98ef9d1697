"""Reads deliveries and prints which of them the library of Standard Webhooks for Python accepts."""

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError


def accepts(secret, body, headers):
    try:
        Webhook(secret).verify(body, headers)
        return True
    except WebhookVerificationError:
        return False


print(json.dumps([accepts(**delivery) for delivery in json.load(sys.stdin)]))
