/* What a fault is called and answered with.
 *
 * Called by whoever answers a refused message; holds two tables and nothing else. */
#include "lib/base/check.h"
#include "lib/http/codec.h"

static const struct {
	struct str token;
	unsigned short status;
	struct str text;
} faults[FAULT_N] = {
#define F(fault, token, status, text) [fault] = {{token, sizeof(token) - 1}, status, {text, sizeof(text) - 1}}
	F(FAULT_NONE, "", 200, "no fault"),
	F(FAULT_SYNTAX, "syntax", 400, "not an HTTP message"),
	F(FAULT_VERSION, "version", 505, "only HTTP/1.0 and HTTP/1.1 are spoken here"),
	F(FAULT_HEAD_SIZE, "head_size", 431, "the head is larger than the limit"),
	F(FAULT_FIELD_COUNT, "field_count", 431, "the head has more fields than the limit"),
	F(FAULT_TARGET_SIZE, "target_size", 414, "the request target is longer than the limit"),
	F(FAULT_HOST, "host", 400, "one valid Host field is needed"),
	F(FAULT_TARGET, "target", 400, "not a request target"),
	F(FAULT_LENGTH, "length", 400, "Content-Length is not one number"),
	F(FAULT_TRANSFER_CODING, "transfer_coding", 400, "Transfer-Encoding is not chunked, once and last"),
	F(FAULT_CODING_UNKNOWN, "unknown_coding", 501, "the transfer coding is not known here"),
	F(FAULT_BOTH_LENGTHS, "both_lengths", 400, "Content-Length beside Transfer-Encoding"),
	F(FAULT_FOLD, "fold", 400, "a folded field line"),
	F(FAULT_CHUNK, "chunk", 400, "not a chunk"),
	F(FAULT_CHUNK_OVERHEAD, "chunk_overhead", 400, "chunk extensions beyond the limit"),
	F(FAULT_TRAILER, "trailer", 400, "not a trailer section"),
	F(FAULT_CONNECT, "connect", 501, "CONNECT is not served here"),
	F(FAULT_CONNECTION, "connection", 400, "Connection names too many fields"),
	F(FAULT_STATUS, "status", 502, "an answer status that cannot be here"),
	F(FAULT_SWITCH, "switch", 502, "protocols were switched unasked"),
	F(FAULT_INTERIM, "interim", 502, "too many interim answers"),
	F(FAULT_EXTRA, "extra_bytes", 502, "bytes behind the end of the answer"),
	F(FAULT_CUT, "cut", 400, "the connection ended inside a message"),
#undef F
};

/* The status that a client is answered with for a fault in its request. */
unsigned codec_fault_status(enum codec_fault f)
{
	CHECK(f < FAULT_N);
	return faults[f].status;
}

/* One line of plain text that says what is wrong. */
struct str codec_fault_text(enum codec_fault f)
{
	CHECK(f < FAULT_N);
	return faults[f].text;
}

/* A short name for logs; "" for FAULT_NONE. */
struct str codec_fault_token(enum codec_fault f)
{
	CHECK(f < FAULT_N);
	return faults[f].token;
}
