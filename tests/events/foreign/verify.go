// Reads deliveries and prints which of them the library of Standard Webhooks for Go accepts.
package main

import (
	"encoding/json"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	var deliveries []struct {
		Secret, Body string
		Headers      map[string]string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&deliveries); err != nil {
		panic(err)
	}
	accepted := []bool{}
	for _, delivery := range deliveries {
		webhook, err := standardwebhooks.NewWebhook(delivery.Secret)
		if err != nil {
			panic(err)
		}
		headers := http.Header{}
		for name, value := range delivery.Headers {
			headers.Set(name, value)
		}
		accepted = append(accepted, webhook.Verify([]byte(delivery.Body), headers) == nil)
	}
	if err := json.NewEncoder(os.Stdout).Encode(accepted); err != nil {
		panic(err)
	}
}
