import bank.ApiClient;
import bank.ApiException;
import bank.ApiResponse;
import bank.api.AccountsApi;
import bank.api.ClientsApi;
import bank.api.TransactionsApi;
import bank.model.*;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A caller of the bank with the generated client: docs/guides/java.md. */
public class Caller {
  static final Pattern NEXT = Pattern.compile("<[^>]*[?&]cursor=([^&>]+)[^>]*>; rel=\"next\"");
  static TransactionsApi transactions;

  // #region post
  /** Returns the decided transaction, which was posted at most once. */
  static Transaction post(CreateTransactionRequest request) throws Exception {
    String key = UUID.randomUUID().toString(); // stored with the payment, before the first attempt
    for (int attempt = 1; ; attempt++) {
      try {
        ApiResponse<Transaction> answer = transactions.createTransactionWithHttpInfo(request, key);
        return answer.getStatusCode() == 202 ? await(answer.getData().getTransactionId()) : answer.getData();
      } catch (ApiException e) {
        boolean open = e.getCause() instanceof IOException || e.getCode() == 429 || e.getCode() >= 503;
        if (!open || attempt == 8) throw e;
        Thread.sleep(200L << attempt);
      }
    }
  }
  // #endregion

  // #region await
  static Transaction await(String id) throws Exception {
    for (;;) {
      Transaction transaction = transactions.getTransaction(id).getData();
      if (!transaction.getStatus().equals("Pending")) return transaction;
      Thread.sleep(500);
    }
  }
  // #endregion

  static void printAll(String account) throws ApiException {
    BigDecimal sum = BigDecimal.ZERO;
    int count = 0;
    String cursor = null;
    do {
      var page = transactions.listTransactionsWithHttpInfo(account, null, null, null, null, null, null, null, null,
          null, null, null, null, null, null, null, null, 250, cursor, null);
      for (Transaction one : page.getData().getData()) {
        sum = sum.add(one.getAmount());
        count++;
      }
      Matcher next = NEXT.matcher(String.join(",", page.getHeaders().getOrDefault("link", java.util.List.of())));
      cursor = next.find() ? next.group(1) : null;
    } while (cursor != null);
    System.out.println("pages " + count + " " + sum.toPlainString());
  }

  interface Call {
    Object run() throws Exception;
  }

  static void printError(Call call) throws Exception {
    try {
      throw new IllegalStateException("it must be refused: " + call.run());
    } catch (ApiException e) {
      ErrorBody error = ApiClient.createDefaultObjectMapper().readValue(e.getResponseBody(), ErrorBody.class);
      System.out.println("error " + e.getCode() + " " + error.getCode() + " " + error.getDetails().get("transaction_id"));
    }
  }

  static ApiClient connect(String key) {
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("BANK_URL"));
    return client.setRequestInterceptor(request -> request.header("x-api-key", key));
  }

  static CreateTransactionRequest request(
      CreateTransactionRequest.TransactionTypeEnum type, String account, String amount, String reference) {
    return new CreateTransactionRequest()
        .accountId(account)
        .transactionType(type)
        .amount(new BigDecimal(amount))
        .reference(reference);
  }

  public static void main(String[] args) throws Exception {
    ApiClient client = connect(System.getenv("BANK_API_KEY"));
    transactions = new TransactionsApi(client);
    AccountsApi accounts = new AccountsApi(client);
    var deposit = CreateTransactionRequest.TransactionTypeEnum.DEPOSIT;
    var withdrawal = CreateTransactionRequest.TransactionTypeEnum.WITHDRAWAL;

    var person = new CreateRetailClientRequest()
        .clientType(CreateRetailClientRequest.ClientTypeEnum.RETAIL)
        .firstName("Amina")
        .lastName("Otieno")
        .email("amina@example.org")
        .contactNumber("+254700000001");
    var created = new ClientsApi(client).createClient(new CreateClientRequest(person), UUID.randomUUID().toString());
    String clientId = created.getData().getRetailClient().getClientId();
    String account = accounts.openAccount(
        new OpenAccountRequest().clientId(clientId).accountType(OpenAccountRequest.AccountTypeEnum.SAVINGS).currency("KES"),
        UUID.randomUUID().toString()).getData().getAccountId();
    System.out.println("account " + account);

    for (String[] one : new String[][] {{"100.10", "cut"}, {"0.20", "slow"}}) {
      Transaction done = post(request(deposit, account, one[0], one[1]));
      System.out.println(one[1] + " " + done.getTransactionId() + " " + done.getStatus());
    }
    System.out.println("balance " + accounts.getAccount(account, null, null).getData().getBalance().toPlainString());
    printAll(System.getenv("ACCOUNT_ID"));
    printError(() -> post(request(withdrawal, account, "999999.99", "too much")));
    printError(() -> accounts.getAccount("acc_" + "0".repeat(32), null, null));
    printError(() -> new AccountsApi(connect("wrong")).getAccount(account, null, null));
    // Codes and types that came after this client are texts like the others.
    printError(() -> accounts.getAccount("acc_" + "f".repeat(32), null, null));
    Transaction last = post(request(deposit, account, "1", "later"));
    System.out.println("type " + transactions.getTransaction(last.getTransactionId()).getData().getTransactionType());
  }
}
