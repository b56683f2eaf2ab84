// WebSocket frames (RFC 6455 5.2), as much as an echo needs.
'use strict';
const crypto = require('crypto');

exports.GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

exports.frame = (first, data, masked) => {
	const n = data.length;
	const bit = masked ? 128 : 0;
	const head = Buffer.alloc(n < 126 ? 2 : n < 65536 ? 4 : 10);
	head[0] = first;
	head[1] = bit | (n < 126 ? n : n < 65536 ? 126 : 127);
	if (head.length === 4) head.writeUInt16BE(n, 2);
	if (head.length === 10) head.writeUIntBE(n, 4, 6);
	if (!masked) return Buffer.concat([head, data]);
	const key = crypto.randomBytes(4);
	return Buffer.concat([head, key, Buffer.from(data).map((b, i) => b ^ key[i & 3])]);
};

// The first whole frame of `kept`: { first, data, size }, or null.
function parse(kept) {
	if (kept.length < 2) return null;
	const masked = kept[1] >> 7;
	let n = kept[1] & 127;
	let at = n === 126 ? 4 : n === 127 ? 10 : 2;
	if (kept.length < at + 4 * masked) return null;
	if (at > 2) n = at === 4 ? kept.readUInt16BE(2) : kept.readUIntBE(4, 6);
	const key = kept.subarray(at, at + 4);
	at += 4 * masked;
	if (kept.length < at + n) return null;
	const data = Buffer.from(kept.subarray(at, at + n));
	return { first: kept[0], data: masked ? data.map((b, i) => b ^ key[i & 3]) : data, size: at + n };
}

// Calls take(first, data) for each frame that comes on the socket, `kept` being what came already.
exports.read = (socket, kept, take) => {
	const all = () => {
		for (let f = parse(kept); f; f = parse(kept)) {
			kept = kept.subarray(f.size);
			take(f.first, f.data);
		}
	};
	socket.on('data', (data) => {
		kept = Buffer.concat([kept, data]);
		all();
	});
	all();
};

// A client's side: sends messages of these sizes, waits for each to come back, and closes.
exports.talk = (socket, kept, sizes) => new Promise((done, fail) => {
	const messages = sizes.map((n) => Buffer.from(crypto.randomBytes(n).toString('hex').slice(0, n)));
	let back = 0;
	socket.on('error', fail);
	socket.on('end', () => (back >= sizes.length ? done() : fail(new Error(`end after ${back} messages`))));
	exports.read(socket, kept, (first, data) => {
		if (back < sizes.length && !data.equals(messages[back])) fail(new Error(`message ${back} is another`));
		if (++back < sizes.length) socket.write(exports.frame(0x81, messages[back], true));
		else if (back === sizes.length) socket.write(exports.frame(0x88, Buffer.from([3, 232]), true));
		else socket.end();
	});
	socket.write(exports.frame(0x81, messages[0], true));
});
