module wheelwork/go-runtime

go 1.25
