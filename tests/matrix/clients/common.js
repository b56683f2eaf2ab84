// What the clients of Node share: a spec in, a line of JSON for each step out.
'use strict';
const crypto = require('crypto');
const fs = require('fs');

exports.pairs = (raw) => {
	const all = [];
	for (let i = 0; i < (raw || []).length; i += 2) all.push([String(raw[i]), String(raw[i + 1])]);
	return all;
};

exports.body = (step) => (step.body ? fs.readFileSync(step.body) : null);

exports.upgrade = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13',
	'Sec-WebSocket-Key': Buffer.from('0123456789abcdef').toString('base64') };

exports.took = (seen, data) => {
	seen.n = data.length;
	seen.sha = crypto.createHash('sha256').update(data).digest('hex');
	if (data.length < 20000) seen.body = data.toString('base64');
};

// client(kind) gives { take(step, seen), end() }.
exports.run = async (client) => {
	const spec = JSON.parse(fs.readFileSync(process.argv[2]));
	for (const kind of spec.kinds) {
		const c = client(spec, kind);
		const all = kind.steps.map((_, i) => ({ kind: kind.name, step: i, status: 0, headers: [], n: 0, sha: '', trailers: [], interim: [], error: '' }));
		const one = (step, i) => c.take(step, all[i]).catch((e) => { all[i].error = String(e.code || e.message || e); });
		if (kind.parallel || kind.pipeline) await Promise.all(kind.steps.map(one));
		else for (const [i, step] of kind.steps.entries()) await one(step, i);
		if (c.end) await c.end();
		for (const seen of all) console.log(JSON.stringify(seen));
	}
	process.exit(0);
};
