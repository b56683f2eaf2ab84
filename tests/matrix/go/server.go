package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

var root string

func echo(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Method", r.Method)
	w.Header().Set("X-Target", r.RequestURI)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Write(data)
}

func file(w http.ResponseWriter, r *http.Request, name string) {
	f, err := os.Open(filepath.Join(root, filepath.Base(name)))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	at, _ := f.Stat()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", at.ModTime(), f)
}

// hijack takes the connection and writes these bytes to it.
func hijack(w http.ResponseWriter, text string) io.ReadWriteCloser {
	c, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	io.WriteString(c, text)
	return struct {
		io.Reader
		io.Writer
		io.Closer
	}{rw, c, c}
}

func answer(w http.ResponseWriter, r *http.Request) {
	path := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 2)
	second := ""
	if len(path) > 1 {
		second = path[1]
	}
	switch path[0] {
	case "*":
		w.Header().Set("Allow", "GET, POST")
	case "echo":
		echo(w, r)
	case "file":
		file(w, r, second)
	case "status":
		code, _ := strconv.Atoi(second)
		w.WriteHeader(code)
		if code != 204 {
			io.WriteString(w, "status\n")
		}
	case "chunked":
		for i := 0; i < 20; i++ {
			io.WriteString(w, strings.Repeat(string(rune('a'+i)), 1000))
			w.(http.Flusher).Flush()
		}
	case "trailers":
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "with a trailer\n")
		w.(http.Flusher).Flush()
		w.Header().Set("X-Sum", "17")
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/plain")
		data, _ := os.ReadFile(filepath.Join(root, "words.gz"))
		w.Write(data)
	case "slow":
		time.Sleep(150 * time.Millisecond)
		io.WriteString(w, "slow, ")
		w.(http.Flusher).Flush()
		time.Sleep(150 * time.Millisecond)
		io.WriteString(w, "but whole\n")
	case "redirect":
		http.Redirect(w, r, "/file/small?"+r.URL.RawQuery, http.StatusFound)
	case "headers":
		for name, values := range r.Header {
			for _, v := range values {
				fmt.Fprintf(w, "%s: %s\r\n", name, v)
			}
		}
	case "bighead":
		for i := 0; i < 30; i++ {
			w.Header().Set(fmt.Sprintf("X-Fill-%02d", i), strings.Repeat("f", 200))
		}
		w.Header()["Set-Cookie"] = []string{"a=1; Path=/", "b=2; HttpOnly", "c=3; Max-Age=60"}
		io.WriteString(w, "big\n")
	case "untilclose":
		hijack(w, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+strings.Repeat("as long as it lasts\n", 100)).Close()
	case "cut":
		w.Header().Set("Content-Length", "100000")
		io.WriteString(w, strings.Repeat("x", 1000))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case "cutchunked":
		io.WriteString(w, strings.Repeat("x", 1000))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case "gone":
		hijack(w, "").Close()
	case "early":
		w.Header().Set("Connection", "close")
		w.WriteHeader(413)
		io.WriteString(w, "big\n")
	case "interim":
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(103)
		file(w, r, "small")
	case "ws":
		c := hijack(w, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: "+wsAccept(r.Header.Get("Sec-WebSocket-Key"))+"\r\n\r\n")
		defer c.Close()
		for {
			first, data, err := wsRead(c)
			if err != nil {
				return
			}
			c.Write(wsFrame(first, data, false))
			if first&15 == 8 {
				return
			}
		}
	default:
		http.NotFound(w, r)
	}
}

// report writes a line for each whole request, and answers all alike.
func report(path string) http.HandlerFunc {
	out, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		panic(err)
	}
	var lock sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		line, _ := json.Marshal(map[string]string{"m": r.Method, "t": hex.EncodeToString([]byte(r.RequestURI)), "b": hex.EncodeToString(data)})
		lock.Lock()
		out.Write(append(line, '\n'))
		lock.Unlock()
		io.WriteString(w, "ok\n")
	}
}

func serve(port, folder string) {
	root = folder
	handler := http.HandlerFunc(answer)
	if path := os.Getenv("REPORT"); path != "" {
		handler = report(path)
	}
	panic(http.ListenAndServe("127.0.0.1:"+port, handler))
}
