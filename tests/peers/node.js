// A TLS client and server of Node's (README.md).
"use strict";
const fs = require("fs"), http = require("http"), https = require("https"), tls = require("tls"), crypto = require("crypto");

const o = JSON.parse(process.argv[2]);
const options = { servername: o.name, minVersion: "TLSv" + o.version, maxVersion: "TLSv" + o.version };
if (o.ca) options.ca = fs.readFileSync(o.ca);
if (o.cert) {
	options.cert = fs.readFileSync(o.cert);
	options.key = fs.readFileSync(o.key);
}

function fail(why) {
	console.log("error: " + why);
	process.exit(1);
}

function connect(session) {
	return new Promise((resolve) => {
		const s = tls.connect(Object.assign({ host: "127.0.0.1", port: o.port, session }, options), () => resolve(s));
		s.on("error", fail);
		s.on("session", (t) => { s.last = t; });
	});
}

function post(socket, body) {
	return new Promise((resolve) => {
		const r = http.request({ createConnection: () => socket, agent: socket.agent, method: "POST", path: "/", host: o.name,
			headers: { "Content-Length": body.length } }, (answer) => {
			const got = [];
			answer.on("data", (d) => got.push(d));
			answer.on("error", fail);
			answer.on("end", () => resolve(Buffer.concat(got)));
		});
		r.on("error", fail);
		r.end(body);
	});
}

async function client() {
	let session;
	for (let round = 0; round < o.rounds; round++) {
		const socket = await connect(session);
		socket.agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
		socket.agent.createConnection = () => socket;
		for (let i = 0; i < o.requests; i++) {
			const body = crypto.randomBytes(o.size);
			if (!(await post(socket, body)).equals(body)) fail("another body");
		}
		console.log(`version=${socket.getProtocol().slice(4)} resumed=${socket.isSessionReused()}`);
		session = socket.last || session;
		socket.destroy();
	}
	process.exit(0);
}

function server() {
	if (o.ca) options.requestCert = options.rejectUnauthorized = true;
	const s = https.createServer(options, (request, answer) => {
		const got = [], t = request.socket;
		request.on("data", (d) => got.push(d));
		request.on("end", () => {
			const body = Buffer.concat(got), cert = t.getPeerCertificate();
			const headers = { "Content-Length": body.length,
				"X-Tls": `version=${t.getProtocol().slice(4)} resumed=${t.isSessionReused()} who=${cert && cert.subject ? cert.subject.CN : "-"}` };
			if (request.url.endsWith("/close")) headers.Connection = "close";
			answer.writeHead(200, headers);
			answer.end(body);
		});
	});
	s.listen(0, "127.0.0.1", () => console.log("port=" + s.address().port));
}

if (o.mode === "client") client();
else server();
