/* What a fault is called and answered with.
 *
 * Called by whoever answers a refused message; holds two tables and nothing else. */
#include "lib/base/check.h"
#include "lib/http/codec.h"

static const struct {
	unsigned short status;
	struct str text;
} faults[FAULT_N] = {
#define F(fault, status, text) [fault] = {status, {text, sizeof(text) - 1}}
	F(FAULT_NONE, 200, "no fault"),
	F(FAULT_SYNTAX, 400, "not an HTTP message"),
	F(FAULT_VERSION, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here"),
	F(FAULT_HEAD_SIZE, 431, "the head is larger than the limit"),
	F(FAULT_FIELD_COUNT, 431, "the head has more fields than the limit"),
	F(FAULT_TARGET_SIZE, 414, "the request target is longer than the limit"),
	F(FAULT_HOST, 400, "one valid Host field is needed"),
	F(FAULT_TARGET, 400, "not a request target"),
	F(FAULT_LENGTH, 400, "Content-Length is not one number"),
	F(FAULT_TRANSFER_CODING, 400, "Transfer-Encoding is not chunked, once and last"),
	F(FAULT_CODING_UNKNOWN, 501, "the transfer coding is not known here"),
	F(FAULT_BOTH_LENGTHS, 400, "Content-Length beside Transfer-Encoding"),
	F(FAULT_FOLD, 400, "a folded field line"),
	F(FAULT_CHUNK, 400, "not a chunk"),
	F(FAULT_CHUNK_OVERHEAD, 400, "chunk extensions beyond the limit"),
	F(FAULT_TRAILER, 400, "not a trailer section"),
	F(FAULT_CONNECT, 405, "CONNECT is not served here"),
	F(FAULT_CONNECTION, 400, "Connection names too many fields"),
	F(FAULT_STATUS, 502, "an answer status that cannot be here"),
	F(FAULT_INTERIM, 502, "too many interim answers"),
	F(FAULT_EXTRA, 502, "bytes behind the end of the answer"),
	F(FAULT_CUT, 400, "the connection ended inside a message"),
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
