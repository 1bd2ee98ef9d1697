import bank.ApiClient;
import bank.ApiException;
import bank.ApiResponse;
import bank.api.AccountsApi;
import bank.api.ClientsApi;
import bank.api.TransactionsApi;
import bank.api.TransactionsApi.APIListTransactionsRequest;
import bank.model.*;
import java.io.IOException;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A caller of the bank with the generated client: docs/guides/java.md. */
public class Caller {
  static final Pattern NEXT = Pattern.compile("<[^>]*[?&]cursor=([^&>]+)[^>]*>; rel=\"next\"");
  static TransactionsApi transactions;

  static class WaitsForApproval extends Exception {
    WaitsForApproval(String approvalId) {
      super(approvalId);
    }
  }

  // #region post
  /**
   * Returns the Completed transaction, or throws WaitsForApproval, or ApiException if it is refused. After
   * IllegalStateException, the outcome is unknown: call it later with the same key. The key is the id of the payment in
   * your database, stored before the first call: it posts at most once per key, however often it is called.
   */
  static Transaction post(String key, CreateTransactionRequest request) throws Exception {
    Instant end = Instant.now().plusSeconds(60);
    for (long pause = 200; ; pause = Math.min(2 * pause, 5000)) {
      Exception cause = null;
      Map<String, List<String>> headers = Map.of();
      try {
        ApiResponse<Transaction> answer = transactions.createTransactionWithHttpInfo(request, key);
        headers = answer.getHeaders();
        String location = first(headers, "location");
        if (answer.getStatusCode() == 201) return answer.getData();
        if (location.contains("/approvals/")) throw new WaitsForApproval(location.replaceFirst(".*/", ""));
      } catch (ApiException e) {
        if (e.getResponseHeaders() != null) headers = e.getResponseHeaders().map();
        boolean isFinal = e.getCode() < 500 && e.getCode() != 408 && e.getCode() != 429;
        // Without a code, it is not the bank's answer.
        if (isFinal && errorOf(e).getCode() != null) throw e;
        cause = e;
      }
      String after = first(headers, "retry-after");
      long wait = Math.max(pause, after.matches("[0-9]{1,9}") ? 1000 * Long.parseLong(after) : 0);
      if (Instant.now().plusMillis(wait).isAfter(end)) throw new IllegalStateException(key + ": outcome unknown", cause);
      Thread.sleep(wait);
    }
  }
  // #endregion

  static ErrorBody errorOf(ApiException e) {
    try {
      return ApiClient.createDefaultObjectMapper().readValue(e.getResponseBody(), ErrorBody.class);
    } catch (IOException | IllegalArgumentException unreadable) {
      return new ErrorBody();
    }
  }

  static String first(Map<String, List<String>> headers, String name) {
    return headers.getOrDefault(name, List.of("")).get(0);
  }

  static void printAll(String account) throws ApiException {
    BigDecimal sum = BigDecimal.ZERO;
    int count = 0;
    String cursor = null;
    do {
      var page = transactions.listTransactionsWithHttpInfo(
          APIListTransactionsRequest.newBuilder().accountId(account).limit(250).cursor(cursor).build());
      for (Transaction one : page.getData().getData()) {
        sum = sum.add(one.getAmount());
        count++;
      }
      Matcher next = NEXT.matcher(first(page.getHeaders(), "link"));
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
      ErrorBody error = errorOf(e);
      System.out.println("error " + e.getCode() + " " + error.getCode() + " " + error.getDetails().get("transaction_id"));
    } catch (WaitsForApproval e) {
      System.out.println("approval " + e.getMessage());
    }
  }

  static ApiClient connect(String key) {
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("BANK_URL"));
    client.setConnectTimeout(Duration.ofSeconds(10)).setReadTimeout(Duration.ofSeconds(10));
    return client.setRequestInterceptor(request -> request.header("x-api-key", key));
  }

  /** Stands for an id in your database. */
  static String newKey() {
    return UUID.randomUUID().toString();
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
    var created = new ClientsApi(client).createClient(new CreateClientRequest(person), newKey());
    String clientId = created.getData().getRetailClient().getClientId();
    String account = accounts.openAccount(
        new OpenAccountRequest().clientId(clientId).accountType(OpenAccountRequest.AccountTypeEnum.SAVINGS).currency("KES"),
        newKey()).getData().getAccountId();
    System.out.println("account " + account);

    for (String[] one : new String[][] {{"400000.13", "cut"}, {"0.20", "slow"}, {"0.30", "bad gateway"}}) {
      Transaction done = post(newKey(), request(deposit, account, one[0], one[1]));
      System.out.println(one[1] + " " + done.getTransactionId() + " " + done.getStatus());
    }
    System.out.println("balance " + accounts.getAccount(account, null, null).getData().getBalance().toPlainString());
    printAll(System.getenv("ACCOUNT_ID"));
    printError(() -> post(newKey(), request(withdrawal, account, "499999.99", "too much")));
    printError(() -> post(newKey(), request(withdrawal, account, "499999.99", "slow, too much")));
    printError(() -> post(newKey(), request(deposit, account, "600000000", "large")));
    printError(() -> accounts.getAccount("acc_" + "0".repeat(32), null, null));
    printError(() -> new AccountsApi(connect("wrong")).getAccount(account, null, null));
    // Codes and types that came after this client are texts like the others.
    printError(() -> accounts.getAccount("acc_" + "f".repeat(32), null, null));
    Transaction last = post(newKey(), request(deposit, account, "1", "later"));
    System.out.println("type " + transactions.getTransaction(last.getTransactionId()).getData().getTransactionType());
  }
}
