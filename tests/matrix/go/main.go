// Go's net/http at both ends: matrix serve PORT ROOT, matrix ask SPEC.
package main

import "os"

func main() {
	if os.Args[1] == "serve" {
		serve(os.Args[2], os.Args[3])
	} else {
		ask(os.Args[2])
	}
}
