// Node's fetch: node_fetch.js SPEC
'use strict';
const common = require('./common.js');

async function take(spec, step, seen) {
	let body = common.body(step);
	if (body && step.chunked) body = new Blob([body]).stream();
	const headers = new Headers(step.headers);
	if (step.close) headers.set('Connection', 'close');
	const a = await fetch(`http://${spec.host}${step.target}`, {
		method: step.method, headers, body, duplex: 'half', redirect: step.follow ? 'follow' : 'manual',
		signal: AbortSignal.timeout(20000),
	});
	seen.status = a.status;
	seen.headers = [...a.headers].filter(([name]) => name !== 'set-cookie')
		.concat(a.headers.getSetCookie().map((value) => ['set-cookie', value]));
	common.took(seen, Buffer.from(await a.arrayBuffer()));
}

common.run((spec) => ({ take: (step, seen) => take(spec, step, seen) }));
