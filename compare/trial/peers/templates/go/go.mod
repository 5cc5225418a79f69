module my-timer

go 1.23
