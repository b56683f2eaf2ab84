module matrix

go 1.19
