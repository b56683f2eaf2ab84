package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
)

// WebSocket frames (RFC 6455 5.2), as much as an echo needs.

func wsAccept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func wsFrame(first byte, data []byte, masked bool) []byte {
	var bit byte
	if masked {
		bit = 128
	}
	n := len(data)
	out := []byte{first}
	switch {
	case n < 126:
		out = append(out, bit|byte(n))
	case n < 65536:
		out = binary.BigEndian.AppendUint16(append(out, bit|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, bit|127), uint64(n))
	}
	if !masked {
		return append(out, data...)
	}
	key := make([]byte, 4)
	rand.Read(key)
	out = append(out, key...)
	for i, b := range data {
		out = append(out, b^key[i&3])
	}
	return out
}

func wsRead(r io.Reader) (byte, []byte, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	n := uint64(head[1] & 127)
	if n > 125 {
		long := make([]byte, 8)
		part := long[6:]
		if n == 127 {
			part = long
		}
		if _, err := io.ReadFull(r, part); err != nil {
			return 0, nil, err
		}
		n = binary.BigEndian.Uint64(long)
	}
	key := make([]byte, 4)
	if head[1]&128 != 0 {
		if _, err := io.ReadFull(r, key); err != nil {
			return 0, nil, err
		}
	}
	data := make([]byte, n)
	_, err := io.ReadFull(r, data)
	for i := range data {
		data[i] ^= key[i&3]
	}
	return head[0], data, err
}

// A client's side: messages of these sizes, each awaited, then the close.
func wsTalk(rw io.ReadWriter, sizes []int) error {
	for _, n := range sizes {
		data := make([]byte, n)
		rand.Read(data)
		copy(data, hex.EncodeToString(data))
		if _, err := rw.Write(wsFrame(0x81, data, true)); err != nil {
			return err
		}
		first, back, err := wsRead(rw)
		if err != nil {
			return err
		}
		if first != 0x81 || !bytes.Equal(data, back) {
			return errors.New("a message came back as another")
		}
	}
	if _, err := rw.Write(wsFrame(0x88, []byte{3, 232}, true)); err != nil {
		return err
	}
	first, _, err := wsRead(rw)
	if err == nil && first != 0x88 {
		return errors.New("a message behind the close")
	}
	return nil	// some answer the close by closing
}
