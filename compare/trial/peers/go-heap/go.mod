module wheelwork/go-heap

go 1.25
