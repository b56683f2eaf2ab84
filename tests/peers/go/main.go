// A TLS client and server of Go's own crypto/tls (../README.md).
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"strings"
)

type order struct {
	Mode, Name, Ca, Cert, Key, Version string
	Port, Size, Rounds, Requests       int
}

func check(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func config(o order) *tls.Config {
	c := &tls.Config{ServerName: o.Name}
	v := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[o.Version]
	c.MinVersion, c.MaxVersion = v, v
	pool := x509.NewCertPool()
	if o.Ca != "" {
		pem, err := os.ReadFile(o.Ca)
		check(err)
		pool.AppendCertsFromPEM(pem)
		c.RootCAs = pool
		c.ClientCAs = pool
	}
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		check(err)
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

var versions = map[uint16]string{tls.VersionTLS12: "1.2", tls.VersionTLS13: "1.3"}

func client(o order) {
	c := config(o)
	c.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	for round := 0; round < o.Rounds; round++ {
		conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", o.Port), c)
		check(err)
		t := &http.Transport{DialTLS: func(_, _ string) (net.Conn, error) { return conn, nil }, MaxConnsPerHost: 1}
		h := &http.Client{Transport: t}
		for i := 0; i < o.Requests; i++ {
			body := make([]byte, o.Size)
			rand.Read(body)
			r, err := h.Post("https://"+o.Name+"/", "application/octet-stream", bytes.NewReader(body))
			check(err)
			got, err := io.ReadAll(r.Body)
			check(err)
			r.Body.Close()
			if !bytes.Equal(got, body) {
				check(fmt.Errorf("another body: %d of %d bytes", len(got), len(body)))
			}
		}
		s := conn.ConnectionState()
		fmt.Printf("version=%s resumed=%t\n", versions[s.Version], s.DidResume)
		conn.Close()
	}
}

func server(o order) {
	c := config(o)
	if o.Ca != "" {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Printf("port=%d\n", l.Addr().(*net.TCPAddr).Port)
	check(http.Serve(tls.NewListener(l, c), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		who := "-"
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		w.Header().Set("X-Tls", fmt.Sprintf("version=%s resumed=%t who=%s", versions[r.TLS.Version], r.TLS.DidResume, who))
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if strings.HasSuffix(r.URL.Path, "/close") {
			w.Header().Set("Connection", "close")
		}
		w.Write(body)
	})))
}

func main() {
	var o order
	check(json.Unmarshal([]byte(os.Args[1]), &o))
	if o.Mode == "client" {
		client(o)
	} else {
		server(o)
	}
}
