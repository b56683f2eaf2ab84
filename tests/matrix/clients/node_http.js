// Node's http: node_http.js SPEC
'use strict';
const http = require('http');
const common = require('./common.js');
const ws = require('../ws.js');

function take(spec, agent, step, seen) {
	return new Promise((done, fail) => {
		const headers = Object.fromEntries(step.headers);
		const body = common.body(step);
		if (body && step.chunked) headers['Transfer-Encoding'] = 'chunked';
		else if (body) headers['Content-Length'] = body.length;
		if (step.expect) headers.Expect = '100-continue';
		if (step.close) headers.Connection = 'close';
		if (step.ws) Object.assign(headers, common.upgrade);
		const [host, port] = spec.host.split(':');
		const req = http.request({ host, port, agent, method: step.method, path: step.target, headers, timeout: 20000 });
		const send = () => {
			for (let at = 0; body && at < body.length; at += 50000) req.write(body.subarray(at, at + 50000));
			req.end();
		};
		req.on('error', fail);
		req.on('timeout', () => req.destroy(new Error('time-out')));
		req.on('information', (a) => a.statusCode !== 100 && seen.interim.push(a.statusCode));
		req.on('response', (a) => {
			const all = [];
			seen.status = a.statusCode;
			seen.headers = common.pairs(a.rawHeaders);
			a.on('data', (piece) => all.push(piece));
			a.on('error', fail);
			a.on('end', () => {
				common.took(seen, Buffer.concat(all));
				seen.trailers = common.pairs(a.rawTrailers);
				done();
			});
		});
		req.on('upgrade', (a, socket, kept) => {
			seen.status = a.statusCode;
			seen.headers = common.pairs(a.rawHeaders);
			ws.talk(socket, kept, step.ws).then(done, fail);
		});
		if (step.expect) req.on('continue', () => { seen.interim.push(100); send(); });
		else send();
		if (step.expect) req.flushHeaders();
	});
}

common.run((spec, kind) => {
	const agent = new http.Agent({ keepAlive: true, maxSockets: kind.parallel ? 20 : 1 });
	return { take: (step, seen) => take(spec, agent, step, seen), end: () => agent.destroy() };
});
