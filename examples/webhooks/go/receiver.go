package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		panic(err)
	}
	requests := make(chan struct{}, 1) // one at a time, because of seen
	seen := map[string]bool{}          // in your database, in the transaction of the changes that the event causes
	http.HandleFunc("/", func(response http.ResponseWriter, request *http.Request) {
		requests <- struct{}{}
		defer func() { <-requests }()
		body, _ := io.ReadAll(request.Body) // the received bytes, not parsed
		var event struct{ ID, Type string }
		if webhook.Verify(body, request.Header) != nil || json.Unmarshal(body, &event) != nil {
			response.WriteHeader(http.StatusUnauthorized)
			return
		}
		if !seen[event.ID] {
			fmt.Println(event.Type, event.ID)
		}
		seen[event.ID] = true
		response.WriteHeader(http.StatusNoContent)
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
