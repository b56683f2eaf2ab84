// Node's http as an origin: node.js PORT ROOT
'use strict';
const http = require('http');
const fs = require('fs');
const crypto = require('crypto');
const ws = require('../ws.js');
const [port, root] = [Number(process.argv[2]), process.argv[3]];
const report = process.env.REPORT && fs.openSync(process.env.REPORT, 'a');
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function body(req) {
	const all = [];
	for await (const piece of req) all.push(piece);
	return Buffer.concat(all);
}

function file(req, res, name) {
	const path = `${root}/${name}`;
	const at = fs.statSync(path).mtime.toUTCString();
	const data = fs.readFileSync(path);
	const range = /^bytes=(\d+)-(\d+)$/.exec(req.headers.range || '');
	res.setHeader('Last-Modified', at);
	if (req.headers['if-modified-since'] === at) {
		res.writeHead(304).end();
	} else if (range) {
		const part = data.subarray(Number(range[1]), Number(range[2]) + 1);
		res.writeHead(206, { 'Content-Range': `bytes ${range[1]}-${range[2]}/${data.length}`, 'Content-Length': part.length });
		res.end(part);
	} else {
		res.setHeader('Content-Length', data.length);
		res.end(req.method === 'HEAD' ? '' : data);
	}
}

const paths = {
	async echo(req, res) {
		const data = await body(req);
		res.writeHead(200, { 'X-Method': req.method, 'X-Target': req.url, 'Content-Length': data.length });
		res.end(data);
	},
	status(req, res, code) {
		res.writeHead(Number(code)).end(code === '204' ? undefined : `status ${code}\n`);
	},
	async chunked(req, res) {
		for (let i = 0; i < 20; i++) {
			res.write(Buffer.alloc(1000, 97 + i));
			if (i % 5 === 0) await sleep(2);
		}
		res.end();
	},
	trailers(req, res) {
		res.writeHead(200, { Trailer: 'X-Sum' });
		res.write('with a trailer\n');
		res.addTrailers({ 'X-Sum': '17' });
		res.end();
	},
	gzip(req, res) {
		const data = fs.readFileSync(`${root}/words.gz`);
		res.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': data.length }).end(data);
	},
	async slow(req, res) {
		await sleep(150);
		res.write('slow, ');
		await sleep(150);
		res.end('but whole\n');
	},
	redirect(req, res) {
		res.writeHead(302, { Location: '/file/small?' + req.url.split('?')[1] }).end();
	},
	headers(req, res) {
		let text = '';
		for (let i = 0; i < req.rawHeaders.length; i += 2) text += `${req.rawHeaders[i]}: ${req.rawHeaders[i + 1]}\r\n`;
		res.end(text);
	},
	bighead(req, res) {
		for (let i = 0; i < 30; i++) res.setHeader(`X-Fill-${String(i).padStart(2, '0')}`, 'f'.repeat(200));
		res.setHeader('Set-Cookie', ['a=1; Path=/', 'b=2; HttpOnly', 'c=3; Max-Age=60']);
		res.end('big\n');
	},
	untilclose(req, res) {
		req.socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n' + 'as long as it lasts\n'.repeat(100));
	},
	cut(req, res) {
		res.writeHead(200, { 'Content-Length': 100000 });
		res.write('x'.repeat(1000), () => req.socket.end());
	},
	cutchunked(req, res) {
		res.writeHead(200);
		res.write('x'.repeat(1000), () => req.socket.end());
	},
	gone(req) {
		req.socket.destroy();
	},
	early(req, res) {
		res.writeHead(413, { Connection: 'close', 'Content-Length': 4 }).end('big\n');
	},
	interim(req, res) {
		res.writeEarlyHints({ link: '</style.css>; rel=preload' });
		file(req, res, 'small');
	},
	file,
};

const server = http.createServer({ keepAliveTimeout: 60000, maxHeaderSize: 65536 }, async (req, res) => {
	try {
		if (report) {
			const data = await body(req);
			fs.writeSync(report, JSON.stringify({ m: req.method, t: Buffer.from(req.url, 'latin1').toString('hex'),
				b: data.toString('hex') }) + '\n');
			// Behind an upgrade that nobody took, Node hangs on a method that it does not know.
			if (req.headers.upgrade) res.setHeader('Connection', 'close');
			res.writeHead(200, { 'Content-Length': 3 }).end('ok\n');
			return;
		}
		if (req.url === '*') {
			res.writeHead(200, { Allow: 'GET, POST', 'Content-Length': 0 }).end();
			return;
		}
		const [, first, second] = req.url.split(/[/?]/);
		if (paths[first]) await paths[first](req, res, second);
		else res.writeHead(404).end();
	} catch (e) {
		req.destroy();
	}
});

if (!report) {
	server.on('upgrade', (req, socket) => {
		const key = crypto.createHash('sha1').update(req.headers['sec-websocket-key'] + ws.GUID).digest('base64');
		socket.on('error', () => {});
		socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
			`Sec-WebSocket-Accept: ${key}\r\n\r\n`);
		ws.read(socket, Buffer.alloc(0), (first, data) => {
			socket.write(ws.frame(first, data, false));
			if ((first & 15) === 8) socket.end();
		});
	});
}
server.requestTimeout = 0;
server.listen(port, '127.0.0.1');
