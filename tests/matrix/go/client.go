package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

type step struct {
	Method, Target, Body           string
	Headers                        [][2]string
	Chunked, Expect, Close, Follow bool
	Ws                             []int
}

type kind struct {
	Name     string
	Parallel bool
	Steps    []step
}

type spec struct {
	Host  string
	Kinds []kind
}

type seen struct {
	Kind     string      `json:"kind"`
	Step     int         `json:"step"`
	Status   int         `json:"status"`
	Headers  [][2]string `json:"headers"`
	N        int         `json:"n"`
	Sha      string      `json:"sha"`
	Body     string      `json:"body"`
	Trailers [][2]string `json:"trailers"`
	Interim  []int       `json:"interim"`
	Error    string      `json:"error"`
}

func fields(h http.Header) [][2]string {
	all := [][2]string{}
	for name, values := range h {
		for _, v := range values {
			all = append(all, [2]string{name, v})
		}
	}
	return all
}

func request(host string, s step, o *seen) (*http.Request, error) {
	var body io.Reader
	if s.Body != "" {
		data, err := os.ReadFile(s.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
		if s.Chunked {
			body = struct{ io.Reader }{body}
		}
	}
	r, err := http.NewRequest(s.Method, "http://"+host+"/", body)
	if err != nil {
		return nil, err
	}
	if s.Target == "*" {
		r.URL = &url.URL{Scheme: "http", Host: host, Opaque: "*"}
	} else if r.URL, err = url.Parse("http://" + host + s.Target); err != nil {
		return nil, err
	} else if r.URL.RequestURI() != s.Target {
		r.URL.Opaque = "//" + host + strings.SplitN(s.Target, "?", 2)[0]
	}
	for _, f := range s.Headers {
		r.Header.Add(f[0], f[1])
	}
	if s.Expect {
		r.Header.Set("Expect", "100-continue")
	}
	if s.Ws != nil {
		key := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef"))
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		r.Header.Set("Sec-WebSocket-Version", "13")
		r.Header.Set("Sec-WebSocket-Key", key)
	}
	r.Close = s.Close
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			o.Interim = append(o.Interim, code)
			return nil
		},
	})), nil
}

func take(host string, t http.RoundTripper, s step, o *seen) error {
	r, err := request(host, s, o)
	if err != nil {
		return err
	}
	c := &http.Client{Transport: t}
	if s.Ws == nil {
		c.Timeout = 20 * time.Second
	}
	if !s.Follow {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	a, err := c.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	o.Status, o.Headers = a.StatusCode, fields(a.Header)
	if a.StatusCode == 101 {
		return wsTalk(a.Body.(io.ReadWriter), s.Ws)
	}
	data, err := io.ReadAll(a.Body)
	sum := sha256.Sum256(data)
	o.N, o.Sha, o.Trailers = len(data), hex.EncodeToString(sum[:]), fields(a.Trailer)
	if len(data) < 20000 {
		o.Body = base64.StdEncoding.EncodeToString(data)
	}
	return err
}

func ask(path string) {
	var s spec
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		panic(err)
	}
	for _, k := range s.Kinds {
		t := &http.Transport{ExpectContinueTimeout: 10 * time.Second}
		all := make([]seen, len(k.Steps))
		var wait sync.WaitGroup
		for i := range k.Steps {
			all[i] = seen{Kind: k.Name, Step: i}
			wait.Add(1)
			one := func(i int) {
				defer wait.Done()
				if err := take(s.Host, t, k.Steps[i], &all[i]); err != nil {
					all[i].Error = err.Error()
				}
			}
			if k.Parallel {
				go one(i)
			} else {
				one(i)
			}
		}
		wait.Wait()
		t.CloseIdleConnections()
		for i := range all {
			line, _ := json.Marshal(all[i])
			fmt.Println(string(line))
		}
	}
}
