module caller

go 1.24.0

require (
	github.com/google/uuid v1.6.0
	github.com/oapi-codegen/runtime v1.4.2
	github.com/shopspring/decimal v1.4.0
)

require github.com/apapsch/go-jsonmerge/v2 v2.0.0 // indirect
