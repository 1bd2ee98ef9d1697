"""A caller of the bank with the generated client: docs/guides/python.md."""

import os
import re
import time
import uuid
from decimal import Decimal

import bank
import urllib3


# #region money
class Client(bank.ApiClient):
    """Sends amounts as JSON numbers; the generated client would send texts. Their 15 digits survive a float."""

    def sanitize_for_serialization(self, obj):
        return float(obj) if isinstance(obj, Decimal) else super().sanitize_for_serialization(obj)
# #endregion


def connect(key):
    return Client(bank.Configuration(host=os.environ["BANK_URL"], api_key={"api_key": key}))


client = connect(os.environ["BANK_API_KEY"])
accounts, transactions = bank.AccountsApi(client), bank.TransactionsApi(client)


class WaitsForApproval(Exception):
    pass


class Unknown(Exception):
    pass


# #region post
def post(key, **fields):
    """Returns the Completed transaction, or raises WaitsForApproval, or bank.ApiException if it is refused.

    After Unknown, call it later with the same key. The key is the id of the payment in your database, stored before
    the first call: it posts at most once per key, however often it is called.
    """
    request = bank.CreateTransactionRequest(**fields)
    end, pause = time.monotonic() + 60, 0.2
    while True:
        cause, headers = None, {}
        try:
            answer = transactions.create_transaction_with_http_info(request, idempotency_key=key, _request_timeout=10.0)
            if answer.status_code == 201:
                return answer.data
            headers, location = answer.headers, header(answer.headers, "location")
            if "/approvals/" in location:
                raise WaitsForApproval(location.split("/")[-1])
        except bank.ApiException as error:
            # Without data, it is not the bank's answer.
            if error.status < 500 and error.status not in (408, 429) and error.data:
                raise
            cause, headers = error, error.headers or {}
        except (urllib3.exceptions.HTTPError, ValueError) as error:  # no answer, or one that cannot be read
            cause = error
        after = header(headers, "retry-after")
        wait = max(pause, int(after) if after.isdigit() else 0)
        if time.monotonic() + wait > end:
            raise Unknown(key) from cause
        time.sleep(wait)
        pause = min(2 * pause, 5)
# #endregion


def header(headers, name):
    return next((value for key, value in headers.items() if key.lower() == name), "")


def print_all(account_id):
    total, count, cursor = Decimal(0), 0, None
    while True:
        page = transactions.list_transactions_with_http_info(account_id=account_id, limit=250, cursor=cursor)
        for one in page.data.data:
            total, count = total + one.amount, count + 1
        after = re.search(r'<[^>]*[?&]cursor=([^&>]+)[^>]*>; rel="next"', header(page.headers, "link"))
        if not after:
            break
        cursor = after[1]
    print("pages", count, total)


def print_error(call):
    try:
        raise AssertionError(f"it must be refused: {call()}")
    except bank.ApiException as refused:
        error = refused.data
        print("error", refused.status, error.code, (error.details or {}).get("transaction_id"))
    except WaitsForApproval as waits:
        print("approval", waits)


def new_key():
    return str(uuid.uuid4())  # stands for an id in your database


person = bank.CreateRetailClientRequest(
    client_type="Retail",
    first_name="Amina",
    last_name="Otieno",
    email="amina@example.org",
    contact_number="+254700000001",
)
created = bank.ClientsApi(client).create_client(bank.CreateClientRequest(person), idempotency_key=new_key())
account = accounts.open_account(
    bank.OpenAccountRequest(
        client_id=created.data.actual_instance.client_id, account_type="Savings", currency="KES"
    ),
    idempotency_key=new_key(),
).data.account_id
print("account", account)

for amount, reference in ("400000.13", "cut"), ("0.20", "slow"), ("0.30", "bad gateway"):
    done = post(new_key(), account_id=account, transaction_type="Deposit", amount=Decimal(amount), reference=reference)
    print(reference, done.transaction_id, done.status)
print("balance", accounts.get_account(account).data.balance)
print_all(os.environ["ACCOUNT_ID"])
withdrawal = {"account_id": account, "transaction_type": "Withdrawal", "amount": Decimal("499999.99")}
print_error(lambda: post(new_key(), **withdrawal, reference="too much"))
print_error(lambda: post(new_key(), **withdrawal, reference="slow, too much"))
large = {"account_id": account, "transaction_type": "Deposit", "amount": Decimal(600000000), "reference": "large"}
print_error(lambda: post(new_key(), **large))
print_error(lambda: accounts.get_account("acc_" + "0" * 32))
print_error(lambda: bank.AccountsApi(connect("wrong")).get_account(account))
# Codes and types that came after this client are texts like the others.
print_error(lambda: accounts.get_account("acc_" + "f" * 32))
last = post(new_key(), account_id=account, transaction_type="Deposit", amount=Decimal(1), reference="later")
print("type", transactions.get_transaction(last.transaction_id).data.transaction_type)
