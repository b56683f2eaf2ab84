// undici, the package: undici.js SPEC
'use strict';
const undici = require('undici');
const common = require('./common.js');
const ws = require('../ws.js');

async function take(client, step, seen) {
	if (step.ws) {
		const { Connection, Upgrade, ...headers } = common.upgrade;
		const a = await client.upgrade({ path: step.target, protocol: Upgrade, headers });
		seen.status = 101;
		await ws.talk(a.socket, Buffer.alloc(0), step.ws);
		return;
	}
	let body = common.body(step);
	if (body && step.chunked) body = (async function* pieces(all) {
		for (let at = 0; at < all.length; at += 50000) yield all.subarray(at, at + 50000);
	})(body);
	const a = await client.request({
		method: step.method, path: step.target, headers: step.headers.flat(), body, reset: step.close,
		maxRedirections: step.follow ? 3 : 0, onInfo: ({ statusCode }) => seen.interim.push(statusCode),
	});
	seen.status = a.statusCode;
	for (const [name, value] of Object.entries(a.headers)) for (const one of [].concat(value)) seen.headers.push([name, one]);
	common.took(seen, Buffer.from(await a.body.arrayBuffer()));
	seen.trailers = Object.entries(a.trailers);
}

common.run((spec, kind) => {
	const client = kind.parallel || kind.steps.some((s) => s.follow)
		? new undici.Agent({ bodyTimeout: 20000 }) : new undici.Client(`http://${spec.host}`, { pipelining: kind.pipeline ? 10 : 1 });
	const one = client instanceof undici.Agent
		? { request: (o) => client.request({ ...o, origin: `http://${spec.host}` }) } : client;
	return { take: (step, seen) => take(one, step, seen), end: () => client.destroy() };
});
