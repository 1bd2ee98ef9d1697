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
    """Sends amounts as JSON numbers; the generated client would send texts. 15 digits survive a float."""

    def sanitize_for_serialization(self, obj):
        return float(obj) if isinstance(obj, Decimal) else super().sanitize_for_serialization(obj)
# #endregion


def connect(key):
    return Client(bank.Configuration(host=os.environ["BANK_URL"], api_key={"api_key": key}))


client = connect(os.environ["BANK_API_KEY"])
accounts, transactions = bank.AccountsApi(client), bank.TransactionsApi(client)


# #region post
def post(**fields):
    """Returns the decided transaction, which was posted at most once."""
    request = bank.CreateTransactionRequest(**fields)
    key = str(uuid.uuid4())  # stored with the payment, before the first attempt
    for attempt in range(1, 9):
        try:
            answer = transactions.create_transaction_with_http_info(request, idempotency_key=key)
            if answer.status_code == 202:
                return wait(answer.data.actual_instance.transaction_id)
            return answer.data
        except urllib3.exceptions.HTTPError:
            if attempt == 8:
                raise
        except bank.ApiException as error:
            if attempt == 8 or error.status != 429 and error.status < 503:
                raise
        time.sleep(0.2 * 2**attempt)
# #endregion


# #region await
def wait(transaction_id):
    while (transaction := transactions.get_transaction(transaction_id).data).status == "Pending":
        time.sleep(0.5)
    return transaction
# #endregion


def header(answer, name):
    return next((value for key, value in answer.headers.items() if key.lower() == name), "")


def print_all(account_id):
    total, count, cursor = Decimal(0), 0, None
    while True:
        page = transactions.list_transactions_with_http_info(account_id=account_id, limit=250, cursor=cursor)
        for one in page.data.data:
            total, count = total + one.amount, count + 1
        after = re.search(r'<[^>]*[?&]cursor=([^&>]+)[^>]*>; rel="next"', header(page, "link"))
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


person = bank.CreateRetailClientRequest(
    client_type="Retail",
    first_name="Amina",
    last_name="Otieno",
    email="amina@example.org",
    contact_number="+254700000001",
)
created = bank.ClientsApi(client).create_client(bank.CreateClientRequest(person), idempotency_key=str(uuid.uuid4()))
account = accounts.open_account(
    bank.OpenAccountRequest(
        client_id=created.data.actual_instance.client_id, account_type="Savings", currency="KES"
    ),
    idempotency_key=str(uuid.uuid4()),
).data.account_id
print("account", account)

for amount, reference in ("100.10", "cut"), ("0.20", "slow"):
    done = post(account_id=account, transaction_type="Deposit", amount=Decimal(amount), reference=reference)
    print(reference, done.transaction_id, done.status)
print("balance", accounts.get_account(account).data.balance)
print_all(os.environ["ACCOUNT_ID"])
print_error(lambda: post(account_id=account, transaction_type="Withdrawal", amount=Decimal("999999.99")))
print_error(lambda: accounts.get_account("acc_" + "0" * 32))
print_error(lambda: bank.AccountsApi(connect("wrong")).get_account(account))
# Codes and types that came after this client are texts like the others.
print_error(lambda: accounts.get_account("acc_" + "f" * 32))
last = post(account_id=account, transaction_type="Deposit", amount=Decimal(1), reference="later")
print("type", transactions.get_transaction(last.transaction_id).data.transaction_type)
