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

func check(response *http.Response, body []byte) error {
	if response.StatusCode < 400 {
		return nil
	}
	refused := &Refused{Status: response.StatusCode}
	_ = json.Unmarshal(body, &refused.ErrorBody) // the status is enough
	return refused
}

// #region post
// post returns the decided transaction, which was posted at most once.
func post(request bank.CreateTransactionRequest) (*bank.Transaction, error) {
	key := uuid.NewString() // stored with the payment, before the first attempt
	for attempt := 1; ; attempt++ {
		answer, err := client.CreateTransactionWithResponse(ctx, &bank.CreateTransactionParams{IdempotencyKey: &key}, request)
		if err == nil && answer.StatusCode() == 202 {
			return wait(path.Base(answer.HTTPResponse.Header.Get("Location")))
		}
		if err == nil {
			err = check(answer.HTTPResponse, answer.Body)
		}
		if err == nil {
			return answer.JSON201, nil
		}
		refused, known := err.(*Refused)
		if attempt == 8 || known && refused.Status != 429 && refused.Status < 503 {
			return nil, err
		}
		time.Sleep(200 * time.Millisecond << attempt)
	}
}

// #endregion

// #region await
func wait(id string) (*bank.Transaction, error) {
	for {
		answer, err := client.GetTransactionWithResponse(ctx, id)
		if err == nil {
			err = check(answer.HTTPResponse, answer.Body)
		}
		if err != nil {
			return nil, err
		}
		if answer.JSON200.Data.Status != "Pending" {
			return &answer.JSON200.Data, nil
		}
		time.Sleep(500 * time.Millisecond)
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
	return must(bank.NewClientWithResponses(os.Getenv("BANK_URL"), bank.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
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
	key := func() *string { key := uuid.NewString(); return &key }

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
	for _, one := range [][2]string{{"100.10", "cut"}, {"0.20", "slow"}} {
		done := must(post(request("Deposit", one[0], one[1])))
		fmt.Println(one[1], done.TransactionId, done.Status)
	}
	fmt.Println("balance", must(getAccount(client, account)).Balance)
	printAll(os.Getenv("ACCOUNT_ID"))
	_, err := post(request("Withdrawal", "999999.99", "too much"))
	printError(err)
	_, err = getAccount(client, "acc_"+strings.Repeat("0", 32))
	printError(err)
	_, err = getAccount(connect("wrong"), account)
	printError(err)
	// Codes and types that came after this client are texts like the others.
	_, err = getAccount(client, "acc_"+strings.Repeat("f", 32))
	printError(err)
	last := must(post(request("Deposit", "1", "later")))
	fmt.Println("type", must(client.GetTransactionWithResponse(ctx, last.TransactionId)).JSON200.Data.TransactionType)
}
