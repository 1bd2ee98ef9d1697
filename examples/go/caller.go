// A caller of the bank with the generated client: docs/guides/go.md.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"caller/bank"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
)

var (
	ctx    = context.Background()
	client *bank.ClientWithResponses
	next   = regexp.MustCompile(`<[^>]*[?&]cursor=([^&>]+)[^>]*>; rel="next"`)
)

// Refused is an answer of the bank that is no success.
type Refused struct {
	Status int
	bank.ErrorBody
}

func (r *Refused) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Message) }

// WaitsForApproval is the answer to a payment that a second person must approve.
type WaitsForApproval struct{ ApprovalID string }

func (w *WaitsForApproval) Error() string { return "waits for " + w.ApprovalID }

// check returns what the bank refused; without a code, it is not the bank's answer.
func check(response *http.Response, body []byte) error {
	if response.StatusCode < 400 {
		return nil
	}
	refused := &Refused{Status: response.StatusCode}
	if json.Unmarshal(body, &refused.ErrorBody) != nil || refused.Code == "" {
		return fmt.Errorf("HTTP %d", response.StatusCode)
	}
	return refused
}

// #region post
// post returns the Completed transaction, a *Refused, or a *WaitsForApproval. Any other error says that
// the outcome is unknown: call it later with the same key. The key is the id of the payment in your
// database, stored before the first call: post posts at most once per key, however often it is called.
func post(key string, request bank.CreateTransactionRequest) (*bank.Transaction, error) {
	end := time.Now().Add(time.Minute)
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		wait := pause
		answer, err := client.CreateTransactionWithResponse(ctx, &bank.CreateTransactionParams{IdempotencyKey: &key}, request)
		if err == nil {
			header := answer.HTTPResponse.Header
			if answer.JSON201 != nil {
				return answer.JSON201, nil
			}
			if location := header.Get("Location"); strings.Contains(location, "/approvals/") {
				return nil, &WaitsForApproval{path.Base(location)}
			}
			err = check(answer.HTTPResponse, answer.Body)
			if refused, ok := err.(*Refused); ok && refused.Status < 500 && refused.Status != 408 && refused.Status != 429 {
				return nil, err
			}
			seconds, _ := strconv.Atoi(header.Get("Retry-After"))
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
		if time.Now().Add(wait).After(end) {
			return nil, fmt.Errorf("outcome of %s unknown: %v", key, err)
		}
		time.Sleep(wait)
	}
}

// #endregion

func printAll(account string) {
	sum, count, limit := decimal.Zero, 0, 250
	query := bank.ListTransactionsParams{AccountId: &account, Limit: &limit}
	for {
		page := must(client.ListTransactionsWithResponse(ctx, &query))
		for _, one := range page.JSON200.Data {
			sum, count = sum.Add(one.Amount), count+1
		}
		after := next.FindStringSubmatch(page.HTTPResponse.Header.Get("Link"))
		if after == nil {
			break
		}
		query.Cursor = &after[1]
	}
	fmt.Println("pages", count, sum)
}

func printError(err error) {
	if waits, ok := err.(*WaitsForApproval); ok {
		fmt.Println("approval", waits.ApprovalID)
		return
	}
	refused := err.(*Refused)
	var id any
	if refused.Details != nil {
		id = (*refused.Details)["transaction_id"]
	}
	fmt.Println("error", refused.Status, refused.Code, id)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func connect(key string) *bank.ClientWithResponses {
	return must(bank.NewClientWithResponses(os.Getenv("BANK_URL"),
		bank.WithHTTPClient(&http.Client{Timeout: 10 * time.Second}),
		bank.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
			request.Header.Set("x-api-key", key)
			return nil
		})))
}

func getAccount(client *bank.ClientWithResponses, id string) (*bank.Account, error) {
	answer, err := client.GetAccountWithResponse(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	if err := check(answer.HTTPResponse, answer.Body); err != nil {
		return nil, err
	}
	return &answer.JSON200.Data, nil
}

func main() {
	// #region money
	decimal.MarshalJSONWithoutQuotes = true // amounts are JSON numbers
	// #endregion
	client = connect(os.Getenv("BANK_API_KEY"))
	key := func() *string { key := uuid.NewString(); return &key } // stands for an id in your database

	var person bank.CreateClientRequest
	if err := person.FromCreateRetailClientRequest(bank.CreateRetailClientRequest{
		ClientType: "Retail", FirstName: "Amina", LastName: "Otieno", Email: "amina@example.org", ContactNumber: "+254700000001",
	}); err != nil {
		panic(err)
	}
	created := must(client.CreateClientWithResponse(ctx, &bank.CreateClientParams{IdempotencyKey: key()}, person))
	owner := must(created.JSON201.Data.AsRetailClient())
	opened := must(client.OpenAccountWithResponse(ctx, &bank.OpenAccountParams{IdempotencyKey: key()},
		bank.OpenAccountRequest{ClientId: owner.ClientId, AccountType: "Savings", Currency: "KES"}))
	account := opened.JSON201.Data.AccountId
	fmt.Println("account", account)

	request := func(kind bank.CreateTransactionRequestTransactionType, amount, reference string) bank.CreateTransactionRequest {
		return bank.CreateTransactionRequest{
			AccountId: account, TransactionType: kind, Amount: decimal.RequireFromString(amount), Reference: &reference,
		}
	}
	for _, one := range [][2]string{{"400000.13", "cut"}, {"0.20", "slow"}, {"0.30", "bad gateway"}} {
		done := must(post(*key(), request("Deposit", one[0], one[1])))
		fmt.Println(one[1], done.TransactionId, done.Status)
	}
	fmt.Println("balance", must(getAccount(client, account)).Balance)
	printAll(os.Getenv("ACCOUNT_ID"))
	_, err := post(*key(), request("Withdrawal", "499999.99", "too much"))
	printError(err)
	_, err = post(*key(), request("Withdrawal", "499999.99", "slow, too much"))
	printError(err)
	_, err = post(*key(), request("Deposit", "600000000", "large"))
	printError(err)
	_, err = getAccount(client, "acc_"+strings.Repeat("0", 32))
	printError(err)
	_, err = getAccount(connect("wrong"), account)
	printError(err)
	// Codes and types that came after this client are texts like the others.
	_, err = getAccount(client, "acc_"+strings.Repeat("f", 32))
	printError(err)
	last := must(post(*key(), request("Deposit", "1", "later")))
	fmt.Println("type", must(client.GetTransactionWithResponse(ctx, last.TransactionId)).JSON200.Data.TransactionType)
}
