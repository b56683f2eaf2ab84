/* conf: every kind of error, at its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conf/conf.h"

static char *scripted_env(const char *name)
{
	static char port[] = "3000", empty[] = "";

	return strcmp(name, "PORT") == 0 ? port : strcmp(name, "EMPTY") == 0 ? empty : NULL;
}

/* What is printed for `text`, without the quoted lines. */
static size_t parse_bad(const char *text, char *out, size_t size)
{
	struct conf_errors e;
	size_t n = 0, used = 0;

	out[0] = '\0';
	conf_errors_init(&e);
	assert_null(conf_parse("t.yaml", str_of(text), scripted_env, &e));
	for (; n < e.count; n++)
		used += (size_t)snprintf(out + used, used < size ? size - used : 0, "%u:%u: %s\n", e.items[n].pos.line,
					 e.items[n].pos.column, e.items[n].text.p);
	conf_errors_fini(&e);
	return n;
}

#define ROUTES "\nroutes: [{service: a}]\nservices: {a: 1.2.3.4:5}\n"
#define ROUTE(keys) "services: {web: 1.2.3.4:5, api: []}\nroutes:\n- " keys "\n"

#define TLS(value) "listen: {address: ':1', tls: " value "}" ROUTES
#define PAIR "certificates: {cert: a, key: b}"
#define SERVICE(value) "services: {a: " value "}\nroutes: [{service: a}]"

static const struct { const char *text, *errors; } bad[] = {
	/* the file */
	{"", "0:0: nothing to serve: the file is empty\n"},
	{"---\n# nothing\n", "0:0: nothing to serve: the file is empty\n"},
	{"workers: 1\n", "1:1: nothing to serve: there are no `routes`\n"},
	{"routes: []\n", "1:9: nothing to serve: `routes` is empty\n"},
	{"routes:\n", "1:1: nothing to serve: `routes` is empty\n"},
	{"- a\n", "1:1: the file is a map of keys, not a list\n"},
	{"routes: x\n", "1:9: `routes` is a list, not a text\n"},
	/* YAML */
	{"a: [b\nc: d\n", "2:2: not valid YAML: did not find expected ',' or ']', while parsing a flow sequence on line 1\n"},
	{"a: b\n\tc: d\n", "2:1: a tab cannot be here; YAML wants spaces\n"},
	{"listen: *:80\n", "1:9: a value that begins with `*` must be in quotes\n"},
	{"a: \"\xff\"\n", "1:5: not valid text: invalid leading UTF-8 octet\n"},
	{"a: \x01\n", "1:4: not valid text: control characters are not allowed\n"},
	{"workers: &x 1" ROUTES, "1:10: anchors (`&name`) are not supported; quote a value that begins with `&`\n"},
	{"workers: *x" ROUTES, "1:10: aliases (`*name`) are not supported; quote a value that begins with `*`\n"},
	{"workers: !!int 1" ROUTES, "1:10: tags (`!name`) are not supported; quote a value that begins with `!`\n"},
	{"a: 1\n---\nb: 2\n", "2:1: a second document; a file holds one\n"},
	{"? [a]\n: b\n", "1:3: a key must be a plain word, not a list; quote a value that begins with `[`\n"},
	{"a: [[[[[[[[[[[[x]]]]]]]]]]]]\n", "1:15: nested deeper than 12\n"},
	{"workers: 1\nworkers: 2" ROUTES, "2:1: duplicate key `workers`, first on line 1\n"},
	/* what YAML reads otherwise than a person */
	{"services:\n  web: [${A}:3000, ${B}:3000]\n", "2:9: quote a value with `${...}` inside `[ ]` or `{ }`\n"},
	{"listen: [${L}]" ROUTES, "1:10: quote a value with `${...}` inside `[ ]` or `{ }`\n"},
	{"listen: [a, ${L}, :81]" ROUTES, "1:13: quote a value with `${...}` inside `[ ]` or `{ }`\n"},
	{"listen: {address: 1.2.3.4:${L:-80}, via: off}" ROUTES,
	 "1:27: quote a value with `${...}` inside `[ ]` or `{ }`\n"},
	{"workers: $PORT\nlisten: [${L}]" ROUTES,
	 "1:10: `$` begins a variable, as in ${NAME}; write `$$` for a dollar\n2:10: quote a value with `${...}` inside `[ ]` or `{ }`\n"},
	{"listen: [::1]:8080" ROUTES, "1:10: an IPv6 address must be in quotes, as in \"[::1]:8080\"\n"},
	{"listen: [::1]" ROUTES, "1:10: an IPv6 address must be in quotes, as in \"[::1]:8080\"\n"},
	{"listen: [fd00::1]:80" ROUTES, "1:18: an IPv6 address must be in quotes, as in \"[::1]:8080\"\n"},
	{"services: {a: [fd00::1]:80}\n", "1:24: an IPv6 address must be in quotes, as in \"[::1]:8080\"\n"},
	{"listen: [[::1]:8080]" ROUTES,
	 "1:10: a key must be a plain word, not a list; quote a value that begins with `[`\n"},
	{"listen: [:80]" ROUTES, "1:10: quote a value that begins with `:` inside `[ ]` or `{ }`\n"},
	{ROUTE("redirect: {to: https://e:8443{path}}"),
	 "3:32: a `,` is missing, or quotes around a value with `{` inside `[ ]` or `{ }`\n"},
	{ROUTE("redirect: {to: https://{host}{path}, status: 301}"),
	 "3:26: a `,` is missing, or quotes around a value with `{` inside `[ ]` or `{ }`\n"},
	{ROUTE("answer: {body: a {b} c}"),
	 "3:20: a `,` is missing, or quotes around a value with `{` inside `[ ]` or `{ }`\n"},
	{ROUTE("host: [a[0]]"), "3:11: a `,` is missing, or quotes around a value with `[` inside `[ ]` or `{ }`\n"},
	{ROUTE("redirect: {to: {path}}"), "3:18: `to` needs a text, not a map; quote a value that begins with `{`\n"},
	{ROUTE("redirect: {to: /x: y}"),
	 "3:20: a `,` is missing, or quotes around a value with `: ` inside `[ ]` or `{ }`\n"},
	{ROUTE("answer: {body: a: b}"),
	 "3:19: a `,` is missing, or quotes around a value with `: ` inside `[ ]` or `{ }`\n"},
	{ROUTE("service: a: b"), "3:13: a value with `: ` in it, or with `:` at its end, must be in quotes\n"},
	{"listen: unix:" ROUTES, "1:13: a value with `: ` in it, or with `:` at its end, must be in quotes\n"},
	{"listen: [unix:, a]" ROUTES, "1:14: quote a value with `:` at its end inside `[ ]` or `{ }`\n"},
	{"routes:\n  -service: web\n", "2:3: `routes` is a list, not a map: a blank must follow the `-`\n"},
	{"routes:\n  -\xc2\xa0""service: web\n",
	 "2:3: `routes` is a list, not a map: a no-break space follows the `-`, where a blank must be\n"},
	{"routes:\n  - answer: {}\n  -answer: {}\n", "3:3: a blank must follow the `-`\n"},
	{"routes:\n  - answer: {}\n  -\xc2\xa0""answer: {}\n",
	 "3:3: a no-break space follows the `-`, where a blank must be\n"},
	{"routes:\n  -\xc2\xa0""service: web\n    path: /\n",
	 "2:3: a no-break space follows the `-`, where a blank must be\n"},
	{"routes:\n  -answer: {}\n  - answer: {}\n", "2:3: a blank must follow the `-`\n"},
	{"listen:\n  -address: ':80'" ROUTES,
	 "2:3: unknown key `-address` in a listener: a blank must follow the `-`\n"},
	{"a: b\n  c: d\n", "2:4: not valid YAML: mapping values are not allowed in this context\n"},
	/* keys and kinds */
	{"worker: 1" ROUTES, "1:1: unknown key `worker` in the file, did you mean `workers`?\n"},
	{"first_byte: 1s" ROUTES, "1:1: unknown key `first_byte` in the file; it is a key of `timeouts`\n"},
	{"zzzzzzzzz: 1" ROUTES,
	 "1:1: unknown key `zzzzzzzzz` in the file; its keys are `workers`, `limits`, `timeouts`, `dns`, `log`, `defaults`, `services`, `listen`, `routes`\n"},
	{"certificates: []" ROUTES, "1:1: unknown key `certificates` in the file; it is a key of `tls` of a listener\n"},
	{"https: on" ROUTES,
	 "1:1: unknown key `https` in the file: TLS is `tls` of a listener or of a service; its keys are `workers`, `limits`, `timeouts`, `dns`, `log`, `defaults`, `services`, `listen`, `routes`\n"},
	{"listen: {address: ':443', certificate: x}" ROUTES,
	 "1:27: unknown key `certificate` in a listener: TLS is `tls` of a listener or of a service; its keys are `address`, `trusted_proxies`, `proxy_protocol`, `tls`, `redirect`, `service`, `sni`, `x_forwarded`, `x_forwarded_client_cert`, `forwarded`, `via`, `request_id`, `underscores`, `upgrade`\n"},
	{"services: {a: {url: x, servers: y}}\nroutes: [{service: a}]",
	 "1:16: unknown key `url` in a service; its keys are `endpoints`, `dns`, `balance`, `host`, `tls`, `max_connections`, `max_requests`, `retry_budget`, `proxy_protocol`, `health`, `eject`\n1:24: unknown key `servers` in a service; its keys are `endpoints`, `dns`, `balance`, `host`, `tls`, `max_connections`, `max_requests`, `retry_budget`, `proxy_protocol`, `health`, `eject`\n"},
	{"services: {a: {upstream: x}}\nroutes: [{service: a}]",
	 "1:16: unknown key `upstream` in a service; its keys are `endpoints`, `dns`, `balance`, `host`, `tls`, `max_connections`, `max_requests`, `retry_budget`, `proxy_protocol`, `health`, `eject`\n"},
	{"limits: {hed: 1KiB}" ROUTES, "1:10: unknown key `hed` in `limits`, did you mean `head`?\n"},
	{"limits: 5" ROUTES, "1:9: `limits` is a map of keys, not a text\n"},
	{"workers: [1]" ROUTES, "1:10: `workers` needs a text, not a list\n"},
	{"workers:" ROUTES, "1:1: `workers` needs a text, not nothing\n"},
	/* compress */
	{ROUTE("{service: web, compress: maybe}"), "3:28: `compress` is on, off or a map, not a text\n"},
	{ROUTE("{service: web, compress: [gzip]}"), "3:28: `compress` is on, off or a map, not a list\n"},
	{ROUTE("{service: web, compress: }"), "3:18: `compress` is on, off or a map, not nothing\n"},
	{ROUTE("{service: web, compress: {types: [], encodings: []}}"),
	 "3:36: `types` is an empty list; write `compress: off`\n3:51: `encodings` is an empty list; write `compress: off`\n"},
	{ROUTE("{service: web, compress: {encodings: [br, gzp]}}"), "3:45: `gzp` is not one of zstd, br and gzip, did you mean `gzip`?\n"},
	{ROUTE("{service: web, compress: {encodings: [br, gzip, br]}}"), "3:51: `br` is there twice\n"},
	{ROUTE("{service: web, compress: {encodings: [all]}}"), "3:41: `all` is not one of zstd, br and gzip\n"},
	{ROUTE("{service: web, compress: {encodings: {br: on}}}"), "3:40: `encodings` needs a text or a list of them, not a map\n"},
	{ROUTE("{service: web, compress: {level: 9}}"), "3:36: `level` is one of fast, balanced or small, not `9`\n"},
	{ROUTE("{service: web, compress: {min_size: 0B}}"), "3:39: `min_size` must be from 1B to 1GiB, not 0B\n"},
	{ROUTE("{service: web, compress: {types: [text, 'a b/c', text/html/x]}}"),
	 "3:37: `text` is not a media type such as `text/html`, `text/*` or `application/*+json`\n"
	 "3:43: `a b/c` is not a media type such as `text/html`, `text/*` or `application/*+json`\n"
	 "3:52: `text/html/x` is not a media type such as `text/html`, `text/*` or `application/*+json`\n"},
	{ROUTE("{service: web, compress: {types: ['*/*', 'a/*b*']}}"),
	 "3:37: `*/*` has a `*` before the `/`; name the types, since most others are compressed already\n3:44: `a/*b*` has more than one `*`\n"},
	{ROUTE("{service: web, compress: {min_sise: 1KiB}}"), "3:29: unknown key `min_sise` in `compress`, did you mean `min_size`?\n"},
	{"compress: on" ROUTES, "1:1: unknown key `compress` in the file; it is a key of `limits`\n"},
	/* numbers */
	{"workers: 257" ROUTES, "1:10: `workers` must be from 1 to 256, or auto, not 257\n"},
	{"workers: 99999999999999999999" ROUTES,
	 "1:10: `workers` must be from 1 to 256, or auto, not 99999999999999999999\n"},
	{"workers: 1.5" ROUTES, "1:10: `1.5` is not a whole number, or auto\n"},
	{"timeouts: {head: 10}" ROUTES, "1:18: `10` needs a unit: ms, s, m, h or d\n"},
	{"timeouts: {head: off}" ROUTES, "1:18: `off` is not a duration, such as 500ms, 10s, 5m, 1h or 1d\n"},
	{"timeouts: {idle: 2d}" ROUTES, "1:18: `idle` must be from 100ms to 1d, not 2d\n"},
	{"timeouts: {tunnel: 40d}" ROUTES, "1:20: `tunnel` must be from 100ms to 30d, or off, not 40d\n"},
	{"limits: {head: 64}" ROUTES, "1:16: `64` needs a unit: B, KiB, MiB, GiB, KB, MB or GB\n"},
	{"limits: {head: 64k}" ROUTES, "1:16: `64k` is not a size; the units are B, KiB, MiB, GiB, KB, MB and GB\n"},
	{"limits: {head: 1B}" ROUTES, "1:16: `head` must be from 1KiB to 16MiB, not 1B\n"},
	{"limits: {target: 128KiB}" ROUTES, "1:18: `target` cannot be more than `head`: it is a part of it\n"},
	{"listen: {address: ':1', forwarded: maybe}" ROUTES, "1:36: `maybe` is neither `on` nor `off`\n"},
	{"log: {level: warning}" ROUTES,
	 "1:14: `level` is one of debug, info, warn or error, not `warning`, did you mean `warn`?\n"},
	{"log: {access: stdot}" ROUTES,
	 "1:15: `access` is stdout, stderr, off, or a path with a `/` in it, not `stdot`, did you mean `stdout`?\n"},
	/* listeners */
	{"listen: []" ROUTES, "1:9: `listen` has no address: nobody could connect\n"},
	{"listen: 8080" ROUTES, "1:9: `8080`: a port alone is written with a colon, as in `:8080`\n"},
	{"listen: ':99999'" ROUTES, "1:9: `:99999`: a port is a number from 1 to 65535, or 0: the kernel picks one\n"},
	{"listen: example.com:80" ROUTES, "1:9: `example.com:80`: an address to listen on is `:8080`, "
	 "`127.0.0.1:8080`, `[::1]:8080` or `unix:/path`\n"},
	{"listen: ['[::1:80']" ROUTES, "1:10: `[::1:80`: `[` without `]`\n"},
	{"listen: [':80', '*:80']" ROUTES, "1:17: `*:80` is listened on already, on line 1\n"},
	{"listen: {via: x}" ROUTES, "1:9: a listener needs `address`\n"},
	{"listen: {address: ':1', via: 'a b'}" ROUTES,
	 "1:30: `via` must be a word of letters, digits and `-`, or off, not `a b`\n"},
	{"listen: {address: ':1', upgrade: [H2C]}" ROUTES,
	 "1:35: `h2c` cannot be upgraded to: it would carry requests past the routes\n"},
	{"listen: {address: ':1', trusted_proxies: [10.0.0.1/8]}" ROUTES,
	 "1:43: `10.0.0.1/8`: the address has bits beyond its network: zero them, as in 10.0.0.0/8\n"},
	{"listen: {address: ':1', trusted_proxies: 10.0.0.0/33}" ROUTES,
	 "1:42: `10.0.0.0/33`: after `/` comes a number from 0 to 32\n"},
	{"listen: https://0.0.0.0:443" ROUTES,
	 "1:9: `https://0.0.0.0:443`: an address to listen on has no scheme: write the address alone, and `tls` beside it\n"},
	{"listen: http://0.0.0.0:80" ROUTES,
	 "1:9: `http://0.0.0.0:80`: an address to listen on has no scheme: write the address alone\n"},
	{"listen: u@0.0.0.0:80" ROUTES,
	 "1:9: `u@0.0.0.0:80`: user names and passwords are not taken: write the address alone\n"},
	{"listen: {address: ':1', trusted_proxies: [unix]}" ROUTES,
	 "1:43: `unix`: not an IP address or a network, such as 10.0.0.0/8, or \"unix:\"\n"},
	/* services */
	{"services: {a: db}\nroutes: [{service: a}]", "1:15: `db`: an address needs a port, as in 127.0.0.1:8080\n"},
	{"services: {a: 'd b:80'}\nroutes: [{service: a}]",
	 "1:15: `d b:80`: an endpoint is an IP address, a host name or unix:/path\n"},
	{"services: {a: ['10.0.0.256:80', '10.0.0:80', 'a..b:80', '*.b:80', '.:80']}\nroutes: [{service: a}]",
	 "1:16: `10.0.0.256:80`: an endpoint is an IP address, a host name or unix:/path\n"
	 "1:33: `10.0.0:80`: an endpoint is an IP address, a host name or unix:/path\n"
	 "1:46: `a..b:80`: has an empty part between dots\n"
	 "1:57: `*.b:80`: an endpoint is an IP address, a host name or unix:/path\n"
	 "1:67: `.:80`: an endpoint is an IP address, a host name or unix:/path\n"},
	{"services: {a: ['db:80', 'DB:80']}\nroutes: [{service: a}]", "1:25: the endpoint `DB:80` is there twice\n"},
	{"services: {a: {dns: 'db:80', endpoints: ['Db:80']}}\nroutes: [{service: a}]", "1:42: the endpoint `db:80` is `dns`, too\n"},
	{"services: {a: {host: keep}}\nroutes: [{service: a}]", "1:15: a service needs `endpoints` or `dns`\n"},
	{"services: {a: {dns: }}\nroutes: [{service: a}]", "1:16: `dns` needs a name and a port, or a map\n"},
	{"services: {a: {dns: '1.2.3.4:80'}}\nroutes: [{service: a}]",
	 "1:21: `1.2.3.4:80`: an address stands in `endpoints`; this is for a name\n"},
	{"services: {a: {dns: {name: 'db:80'}}}\nroutes: [{service: a}]", "1:28: `db:80` is a name and more: the port is `port`\n"},
	{"services: {a: {dns: {name: 'd b'}}}\nroutes: [{service: a}]", "1:28: `d b` is no host name\n"},
	{"services: {a: {dns: {name: db, srv: on, port: 80}}}\nroutes: [{service: a}]",
	 "1:41: `port` beside `srv: on`: SRV records have the port\n"},
	{"services: {a: {dns: {name: db, srv: on}, tls: on}}\nroutes: [{service: a}]",
	 "1:47: the endpoints of `a` are found by SRV records: say whose certificate they have, as in `tls: { name: app.example.com }`\n"},
	{"services: {a: ['https://a.test', 'https://b.test']}\nroutes: [{service: a}]",
	 "1:16: the endpoints of `a` are addresses, or go by several names: say whose certificate they have, as in `tls: { name: app.example.com }`\n"},
	{"dns: {nameservers: [10.0.0.1, dns.test, '::1', '[::1]:53', '[::1]:x', '10.0.0.1:0', unix:/x], search: ['a b']}\n"
	 "services: {a: []}\nroutes: [{service: a}]",
	 "1:31: `dns.test`: a name server is an IP address, with or without a port\n"
	 "1:60: `[::1]:x`: a port is a number from 1 to 65535\n"
	 "1:71: `10.0.0.1:0`: a port is a number from 1 to 65535\n"
	 "1:85: `unix:/x`: a name server is an IP address, with or without a port\n"
	 "1:104: `a b` is no domain: letters, digits, `-` and dots\n"},
	{"services: {a: https://1.2.3.4}\nroutes: [{service: a}]",
	 "1:15: the endpoints of `a` are addresses, or go by several names: say whose certificate they have, as in `tls: { name: app.example.com }`\n"},
	{"services: {a: http://1.2.3.4/x}\nroutes: [{service: a}]",
	 "1:15: `http://1.2.3.4/x`: an endpoint is an address: it has no path, `http://10.0.0.1:3000` say\n"},
	{"services: {a: 1.2.3.4}\nroutes: [{service: a}]",
	 "1:15: `1.2.3.4`: an address needs a port, as in 127.0.0.1:8080\n"},
	{"services: {a: '::1'}\nroutes: [{service: a}]",
	 "1:15: `::1`: an IPv6 address must be in brackets, as in [::1]:8080\n"},
	{"services: {a: ':80'}\nroutes: [{service: a}]",
	 "1:15: `:80`: an endpoint needs an address before its port\n"},
	{"services: {a: [1.2.3.4:5, 1.2.3.4:5]}\nroutes: [{service: a}]",
	 "1:27: the endpoint `1.2.3.4:5` is there twice\n"},
	{SERVICE("{endpoints: [{weight: 1}]}"), "1:28: an endpoint needs `address`\n"},
	{SERVICE("{endpoints: [{address: 1.2.3.4:5, weight: 65536}]}"), "1:57: `weight` must be from 0 to 65535, not 65536\n"},
	{SERVICE("{endpoints: [{address: 1.2.3.4:5, weight: -1}]}"), "1:57: `-1` is not a number\n"},
	{SERVICE("{endpoints: [{address: 1.2.3.4:5, state: down}]}"), "1:56: `state` is one of ready, serving, terminating or drain, not `down`\n"},
	{SERVICE("{endpoints: [{address: 1.2.3.4:5}, 1.2.3.4:5]}"), "1:50: the endpoint `1.2.3.4:5` is there twice\n"},
	{SERVICE("{endpoints: [{address: 1.2.3.4}]}"), "1:38: `1.2.3.4`: an address needs a port, as in 127.0.0.1:8080\n"},
	{SERVICE("{endpoints: [], balance: roundrobin}"), "1:40: `balance` is least, round_robin, or a map with `hash` or `sticky`, not `roundrobin`, did you mean `round_robin`?\n"},
	{SERVICE("{endpoints: [], balance: sticky}"), "1:40: `sticky` needs to know by what: write `balance: {sticky: {cookie: NAME}}`\n"},
	{SERVICE("{endpoints: [], balance: hash}"), "1:40: `hash` needs to know by what: write `balance: {hash: address}`\n"},
	{SERVICE("{endpoints: [], balance: {}}"), "1:40: `balance` is an empty map: it has `hash` or `sticky`\n"},
	{SERVICE("{endpoints: [], balance: [least]}"), "1:40: `balance` needs a text, not a list\n"},
	{SERVICE("{endpoints: [], balance: {hash: address, sticky: {cookie: a}}}"), "1:56: `hash` or `sticky`, not both\n"},
	{SERVICE("{endpoints: [], balance: {bound: 125, sticky: {cookie: a}}}"), "1:41: `bound` is for `hash`\n"},
	{SERVICE("{endpoints: [], balance: {hash: path, bound: 100}}"), "1:60: `bound` must be from 101 to 1000, or off, not 100\n"},
	{SERVICE("{endpoints: [], balance: {hash: adress}}"), "1:47: `hash` is address, path, or a map such as `{header: NAME}`, not `adress`, did you mean `address`?\n"},
	{SERVICE("{endpoints: [], balance: {hash: {}}}"), "1:47: `hash` goes by one thing: `header`, `cookie` or `query`\n"},
	{SERVICE("{endpoints: [], balance: {hash: {header: a, cookie: b}}}"), "1:47: `hash` goes by one thing: `header`, `cookie` or `query`\n"},
	{SERVICE("{endpoints: [], balance: {hash: {header: 'a b'}}}"), "1:56: `a b` is not the name of a header\n"},
	{SERVICE("{endpoints: [], balance: {hash: {header: Connection}}}"), "1:56: `Connection` is not among the fields that requests are told apart by\n"},
	{SERVICE("{endpoints: [], balance: {hash: {cookie: 'a=b'}}}"), "1:56: `a=b` is not the name of a cookie\n"},
	{SERVICE("{endpoints: [], balance: {hash: {query: 'a&b'}}}"), "1:55: `a&b` is not the name of a query parameter\n"},
	{SERVICE("{endpoints: [], balance: {sticky: {}}}"), "1:49: `sticky` needs `cookie`\n"},
	{SERVICE("{endpoints: [], balance: {sticky: home}}"), "1:49: `sticky` is a map of keys, not a text\n"},
	{SERVICE("{endpoints: [], balance: {sticky: {cookie: a, key: short}}}"), "1:66: `key` has 16 to 256 bytes, as `openssl rand -hex 16` makes them\n"},
	{SERVICE("{endpoints: [], balance: {sticky: {cookie: a, ttl: 1ms}}}"), "1:66: `ttl` must be from 1s to 400d, or off, not 1ms\n"},
	{"services: {a: }\nroutes: [{service: a}]", "1:12: the service `a` needs endpoints; `[]` is none\n"},
	{"services: {a/b: []}\nroutes: [{service: a/b}]",
	 "1:12: `a/b`: a service's name has 1 to 63 letters, digits, `-`, `_` and `.`\n"},
	{"services: {a: {endpoints: [], host: endpont}}\nroutes: [{service: a}]",
	 "1:37: `endpont` is neither keep nor endpoint, did you mean `endpoint`?\n"},
	{"services: {a: {host: x.de}}\nroutes: [{service: a}]", "1:15: a service needs `endpoints` or `dns`\n"},
	{"services: {a: http://u:p@127.0.0.1:3000}\nroutes: [{service: a}]",
	 "1:15: `http://u:p@127.0.0.1:3000`: user names and passwords are not taken: write the address alone\n"},
	{"services: {a: https://u:p@127.0.0.1}\nroutes: [{service: a}]",
	 "1:15: `https://u:p@127.0.0.1`: user names and passwords are not taken: write the address alone\n"},
	{"services: {a: tcp://1.2.3.4:5}\nroutes: [{service: a}]",
	 "1:15: `tcp://1.2.3.4:5`: the scheme of an endpoint is http:// or https://, for WebSocket too\n"},
	{"services: {a: 1.2.3.4:0}\nroutes: [{service: a}]",
	 "1:15: `1.2.3.4:0`: a port is a number from 1 to 65535\n"},
	/* TLS of listeners */
	{TLS("on"), "1:30: `tls` is off or a map of keys, not `on`\n"},
	{TLS("[]"), "1:30: `tls` is off or a map of keys, not a list\n"},
	{TLS("{}"), "1:30: `tls` of a listener needs `certificates`\n"},
	{TLS("{certificates: []}"), "1:45: `certificates` is an empty list\n"},
	{TLS("{certificates: x.pem}"), "1:45: a certificate is a map of keys, not a text\n"},
	{TLS("{certificates: [{cert: a}, {key: b}]}"),
	 "1:46: a certificate needs `key`\n1:57: a certificate needs `cert`\n"},
	{TLS("{certificates: {cert: '-----BEGIN CERTIFICATE-----', key: b}}"),
	 "1:52: `cert` is the path of a file, not what is in it\n"},
	{TLS("{" PAIR ", min_version: 1.1}"), "1:77: `min_version` is one of 1.2 or 1.3, not `1.1`, did you mean `1.2`?\n"},
	{TLS("{" PAIR ", min_version: TLSv1.2}"), "1:77: `min_version` is one of 1.2 or 1.3, not `TLSv1.2`\n"},
	{TLS("{" PAIR ", min_version: 1.3, max_version: 1.2}"), "1:77: `min_version` is above `max_version`\n"},
	{TLS("{" PAIR ", min_version: 1.3, ciphers: AES128-SHA}"),
	 "1:82: `ciphers` are those of TLS 1.2, which `min_version` leaves out\n"},
	{TLS("{" PAIR ", max_version: 1.2, suites: [A, B]}"),
	 "1:82: `suites` are those of TLS 1.3, which `max_version` leaves out\n"},
	{TLS("{" PAIR ", ciphers: 'A B'}"),
	 "1:73: `A B` is not a name as OpenSSL has them, or several with `:` between\n"},
	{TLS("{" PAIR ", ciphers: []}"), "1:73: `ciphers` is an empty list; leave it out for the default\n"},
	{TLS("{" PAIR ", groups: [X25519, [P-256]]}"), "1:81: `groups` needs a text, not a list\n"},
	{TLS("{" PAIR ", groups: defualt}"), "1:72: `defualt` is no name of OpenSSL's, did you mean `default`?\n"},
	{TLS("{" PAIR ", client_certificates: on}"), "1:85: `client_certificates` is off or a map of keys, not `on`\n"},
	{TLS("{" PAIR ", client_certificates: {mode: optional}}"), "1:85: `client_certificates` needs `ca`\n"},
	{TLS("{" PAIR ", client_certificates: {ca: a, mode: optonal}}"),
	 "1:99: `mode` is one of require or optional, not `optonal`, did you mean `optional`?\n"},
	{TLS("{" PAIR ", tickets: 12h}"), "1:73: `tickets` is on, off or a map of keys, not `12h`\n"},
	{TLS("{" PAIR ", tickets: {}}"), "1:73: `tickets` needs `key_file`\n"},
	{"listen: {address: ':1', tls: {" PAIR "}, sni: {'*': a}}" ROUTES,
	 "1:25: `tls` ends TLS, and a listener with `sni` passes it on as it is\n"},
	{"listen: {address: ':1', service: a}\nservices: {a: https://localhost}\n",
	 "1:34: the service `a` has `tls`, and what a listener passes on is not put into TLS\n"},
	/* what a listener says of certificates, and where else it sends */
	{"listen: {address: ':1', x_forwarded_client_cert: set}" ROUTES,
	 "1:50: no client shows a certificate here: that needs `tls` with `client_certificates`\n"},
	{TLS("{" PAIR "}, x_forwarded_client_cert: set"),
	 "1:90: no client shows a certificate here: that needs `tls` with `client_certificates`\n"},
	{"listen: {address: ':1', x_forwarded_client_cert: append}" ROUTES,
	 "1:50: no client shows a certificate here: that needs `tls` with `client_certificates`; to let pass what `trusted_proxies` say, write `pass`\n"
	 "1:50: `append` needs `trusted_proxies`: those whose field is believed\n"},
	{"listen: {address: ':1', x_forwarded_client_cert: pass}" ROUTES,
	 "1:50: `pass` needs `trusted_proxies`: those whose field is believed\n"},
	{"listen: {address: ':1', x_forwarded_client_cert: on}" ROUTES,
	 "1:50: `x_forwarded_client_cert` is one of off, set, append or pass, not `on`\n"},
	{"listen: {address: ':1', service: a, x_forwarded_client_cert: off}" ROUTES,
	 "1:37: `x_forwarded_client_cert` is about HTTP, which a listener with `service` does not read\n"},
	{"listen: {address: ':1', redirect: https}" ROUTES, "1:35: a redirect is a map of keys, not a text: write `redirect: {scheme: https}`\n"},
	{"listen: {address: ':1', redirect: {}}" ROUTES, "1:35: a redirect needs `to`, or one of `scheme`, `host`, `port` and `path`\n"},
	{"listen: {address: ':1', redirect: {scheme: http}}" ROUTES,
	 "1:25: the redirect leads back to this listener, for ever\n"},
	{"listen: {address: ':1', redirect: {path: {replace_full: /x}}}" ROUTES,
	 "1:25: the redirect leads back to this listener, for ever\n"},
	{"listen: {address: ':1', redirect: {host: a.de, path: {replace_prefix: /x}}}" ROUTES,
	 "1:55: the `redirect` of a listener is for all paths: there is no prefix to replace\n"},
	{TLS("{" PAIR "}, redirect: {scheme: https}"),
	 "1:65: the redirect leads back to this listener, for ever: it is for one without `tls`\n"},
	{"listen: {address: ':1', service: a, redirect: {scheme: https}}" ROUTES,
	 "1:37: `redirect` is about HTTP, which a listener with `service` does not read\n"},
	{"listen: [{address: ':1', redirect: {scheme: https}}, ':2']\nservices: {a: []}", "1:1: nothing to serve: there are no `routes`\n"},
	/* TLS of services */
	{"services: {a: {endpoints: https://localhost, proxy_protocol: v2}}\nroutes: [{service: a}]",
	 "1:46: the endpoints of `a` are spoken to by TLS, and no header is put in front of that: `tls` or `proxy_protocol`, not both\n"},
	{"services: {a: {endpoints: '[::1]:443', tls: {name: a.de}, proxy_protocol: v1}}\nroutes: [{service: a}]",
	 "1:59: the endpoints of `a` are spoken to by TLS, and no header is put in front of that: `tls` or `proxy_protocol`, not both\n"},
	{"services: {a: [https://1.2.3.4, 1.2.3.5:443]}\nroutes: [{service: a}]",
	 "1:33: some endpoints of the service `a` begin with https:// and this one does not: all are alike\n"},
	{SERVICE("{endpoints: [https://1.2.3.4, http://1.2.3.5], host: a.de}"),
	 "1:45: some endpoints of the service `a` begin with https:// and this one does not: all are alike\n"},
	{SERVICE("{endpoints: https://1.2.3.4, tls: off}"),
	 "1:27: `tls` is off, and this endpoint begins with https://\n"},
	{SERVICE("{endpoints: [http://1.2.3.4], tls: on, host: a.de}"),
	 "1:28: `tls` is on, and this endpoint begins with http://\n"},
	{SERVICE("{endpoints: [1.2.3.4:1], tls: on}"),
	 "1:45: the endpoints of `a` are addresses, or go by several names: say whose certificate they have, as in `tls: { name: app.example.com }`\n"},
	{SERVICE("{endpoints: [localhost:1, '127.0.0.2:1'], tls: on}"),
	 "1:62: the endpoints of `a` are addresses, or go by several names: say whose certificate they have, as in `tls: { name: app.example.com }`\n"},
	{SERVICE("{endpoints: 'unix:/x', tls: {}}"),
	 "1:43: the endpoints of `a` are addresses, or go by several names: say whose certificate they have, as in `tls: { name: app.example.com }`\n"},
	{SERVICE("{endpoints: 1.2.3.4:1, tls: maybe}"), "1:43: `tls` is on, off or a map of keys, not `maybe`\n"},
	{SERVICE("{endpoints: 1.2.3.4:1, tls: {name: a.de:443}}"), "1:50: `a.de:443` has a port: a name has none\n"},
	{SERVICE("{endpoints: 1.2.3.4:1, tls: {name: '*.de'}}"), "1:50: `*.de` is not one name\n"},
	{SERVICE("{endpoints: 1.2.3.4:1, host: b.de, tls: {cert: a}}"), "1:62: `cert` needs `key`, its private key\n"},
	{SERVICE("{endpoints: 1.2.3.4:1, host: b.de, tls: {key: a}}"),
	 "1:61: `key` needs `cert`, the certificate that it is for\n"},
	{SERVICE("{endpoints: 1.2.3.4:1, host: b.de, tls: {crl: a}}"), "1:61: `crl` needs `ca`: those who have revoked\n"},
	{SERVICE("{endpoints: 1.2.3.4:1, tls: {ca: a, insecure_skip_verify: on}}"),
	 "1:44: `ca` beside `insecure_skip_verify`: nothing is verified\n"},
	{SERVICE("{endpoints: 1.2.3.4:1, tls: {insecure: on}}"),
	 "1:44: unknown key `insecure` in `tls` of a service; its keys are `ca`, `crl`, `name`, `insecure_skip_verify`, `cert`, `key`, `min_version`, `max_version`, `ciphers`, `suites`, `groups`, `park`\n"},
	/* HSTS */
	{ROUTE("{service: web, hsts: 1y}"), "3:24: `hsts` is on, off or a map of keys, not `1y`\n"},
	{ROUTE("{service: web, hsts: {max_age: 31536000}}"), "3:34: `31536000` needs a unit: ms, s, m, h or d\n"},
	{ROUTE("{service: web, hsts: {preload: on}}"),
	 "3:25: `preload` needs `include_subdomains: on` and a `max_age` of at least 365d\n"},
	{ROUTE("{service: web, hsts: {preload: on, include_subdomains: on, max_age: 364d}}"),
	 "3:25: `preload` needs `include_subdomains: on` and a `max_age` of at least 365d\n"},
	/* whose requests, and how many */
	{ROUTE("{service: web, allow: []}"), "3:25: `allow` is an empty list; leave it out, or write `all`\n"},
	{ROUTE("{service: web, allow: none}"),
	 "3:25: `none`: not an IP address or a network, such as 10.0.0.0/8, or \"unix:\"\n"},
	{ROUTE("{service: web, allow: [10.0.0.0/8, all]}"),
	 "3:38: `all`: not an IP address or a network, such as 10.0.0.0/8, or \"unix:\"\n"},
	{ROUTE("{service: web, deny: 10.0.0.1/8}"),
	 "3:24: `10.0.0.1/8`: the address has bits beyond its network: zero them, as in 10.0.0.0/8\n"},
	{ROUTE("{service: web, allow: {10.0.0.0/8: 1}}"), "3:25: `allow` needs a text or a list of them, not a map\n"},
	{ROUTE("{service: web, auth: web}"), "3:24: `auth` is a map of keys, not a text\n"},
	{ROUTE("{service: web, auth: {path: /}}"), "3:24: `auth` needs `service`\n"},
	{ROUTE("{service: web, auth: {service: wep}}"), "3:34: there is no service `wep`, did you mean `web`?\n"},
	{ROUTE("{service: web, auth: {service: web, path: x}}"),
	 "3:45: the path `x` must begin with `/`: whom it is for is what `service` says\n"},
	{ROUTE("{service: web, auth: {service: web, path: //x}}"), "3:45: the path `//x` begins with two slashes\n"},
	{ROUTE("{service: web, auth: {service: web, path: '/a b'}}"), "3:45: the path `/a b` has a byte that a path cannot have\n"},
	{ROUTE("{service: web, auth: {service: web, path: '/x#y'}}"),
	 "3:45: the path `/x#y` has a fragment, which no server sees\n"},
	{ROUTE("{service: web, auth: {service: web, method: PUT}}"),
	 "3:47: `method` is one of GET, HEAD or POST, not `PUT`, did you mean `GET`?\n"},
	{ROUTE("{service: web, auth: {service: web, request_headers: [Host]}}"),
	 "3:57: `Host` cannot be changed here; see `host` of a service\n"},
	{ROUTE("{service: web, auth: {service: web, sign_in: 'login'}}"),
	 "3:48: `login` must begin with http://, https:// or /\n"},
	{ROUTE("{service: web, auth: {service: web, sign_in: 'https://{url}/?x'}}"),
	 "3:48: `https://{url}/?x` has `{url}` outside of a query: it is the value of a parameter\n"},
	{ROUTE("{service: web, auth: {service: web, sign_in: '/?rd={path}'}}"),
	 "3:48: `{path}` is no placeholder; there are {url} and {host}\n"},
	{ROUTE("{service: web, auth: {service: web, sign_in: '//evil/?rd={url}'}}"),
	 "3:48: `//evil/?rd={url}` begins with two slashes, which is another host to a browser\n"},
	{ROUTE("{answer: {}, mirror: {service: web}}"), "3:16: `mirror` is for a route with a `service`\n"},
	{ROUTE("{service: web, mirror: {service: web, share: 10}}"),
	 "3:48: `share` must be from 0 to 1, or have a `%` at its end, not 10\n"},
	{ROUTE("{service: web, mirror: {service: web, share: 100.1%}}"), "3:48: `share` must be from 0% to 100%, not 100.1%\n"},
	{ROUTE("{service: web, mirror: {service: web, share: -1%}}"), "3:48: `-1%` is not a share, such as 10% or 0.1\n"},
	{ROUTE("{service: web, mirror: {service: web, share: 0.1.1}}"), "3:48: `0.1.1` is not a share, such as 10% or 0.1\n"},
	{ROUTE("{service: web, mirror: {service: web, share: 1.%}}"), "3:48: `1.%` is not a share, such as 10% or 0.1\n"},
	{ROUTE("{service: web, mirror: {service: web, share: 0.0000001}}"),
	 "3:48: `0.0000001` is not a share, such as 10% or 0.1\n"},
	{ROUTE("{service: web, mirror: {service: web, share: '%'}}"), "3:48: `%` is not a share, such as 10% or 0.1\n"},
	{ROUTE("{service: web, rate_limit: 10}"), "3:30: `10` needs a time: 10/s, 100/m or 1000/h\n"},
	{ROUTE("{service: web, rate_limit: many}"), "3:30: `many` is not a rate, such as 10/s, 100/m or 1000/h\n"},
	{ROUTE("{service: web, rate_limit: 10r/s}"), "3:30: `10r/s` is not a rate, such as 10/s, 100/m or 1000/h\n"},
	{ROUTE("{service: web, rate_limit: 0/s}"), "3:30: `0/s` must be from 1 to 1000000 in its time\n"},
	{ROUTE("{service: web, rate_limit: 1000001/h}"), "3:30: `1000001/h` must be from 1 to 1000000 in its time\n"},
	{ROUTE("{service: web, rate_limit: 99999999999999999999/s}"),
	 "3:30: `99999999999999999999/s` must be from 1 to 1000000 in its time\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/d}}"),
	 "3:37: `5/d` has a time that is none of s, m and h, as in 10/s, 100/m or 1000/h\n"},
	{ROUTE("{service: web, rate_limit: {burst: 5}}"), "3:30: a rate limit needs `rate`\n"},
	{ROUTE("{service: web, rate_limit: {rat: 5/s}}"), "3:31: unknown key `rat` in a rate limit, did you mean `rate`?\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/s, burst: 0}}"),
	 "3:49: `burst` must be from 1 to 1000000, or auto, not 0\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/s, by: ip}}"),
	 "3:46: `by` is address, route or `{ header: NAME }`, not `ip`\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/s, by: rout}}"),
	 "3:46: `by` is address, route or `{ header: NAME }`, not `rout`, did you mean `route`?\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/s, by: [route]}}"), "3:46: `by` needs a text, not a list\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/s, by: {}}}"), "3:46: `by` needs `header`\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/s, by: {header: a b}}}"), "3:55: `a b` is not a header name\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/s, by: {header: host}}}"),
	 "3:55: `host` is not among the fields that requests are told apart by\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/s, name: a/b}}"),
	 "3:48: `name` must be a word of letters, digits and `-`, or off, not `a/b`\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/s, ipv4_prefix: 33}}"),
	 "3:55: `ipv4_prefix` must be from 1 to 32, not 33\n"},
	{ROUTE("{service: web, rate_limit: {rate: 5/s, ipv6_prefix: 129}}"),
	 "3:55: `ipv6_prefix` must be from 1 to 128, not 129\n"},
	{ROUTE("{service: web, rate_limit: []}"), "3:30: `rate_limit` is an empty list; write `off` for no limit\n"},
	{ROUTE("{service: web, rate_limit: [off]}"), "3:31: `off` is not a rate, such as 10/s, 100/m or 1000/h\n"},
	{ROUTE("{service: web, rate_limit: [[1/s]]}"), "3:31: a rate limit is a map of keys, not a list\n"},
	{ROUTE("{service: web, rate_limit: [1/s, 1/s, 1/s, 1/s, 1/s, 1/s, 1/s, 1/s, 1/s]}"),
	 "3:30: `rate_limit` has more than 8 items\n"},
	{ROUTE("{service: web, rate_limit: [1/s, {rate: 9/m}]}"),
	 "3:36: two limits are called `address`: give one of them another `name`\n"},
	{"defaults: {rate_limit: 1}" ROUTES, "1:24: `1` needs a time: 10/s, 100/m or 1000/h\n"},
	{"limits: {rate_memory: 1KiB}" ROUTES, "1:23: `rate_memory` must be from 4KiB to 1GiB, not 1KiB\n"},
	/* listeners that pass bytes on */
	{"listen: {address: ':1', service: wbe}" ROUTES, "1:34: there is no service `wbe`\n"},
	{"listen: {address: ':1', service: [a]}" ROUTES, "1:34: `service` needs a text, not a list\n"},
	{"listen: {address: ':1', sni: a}" ROUTES,
	 "1:30: `sni` is a map of 1 to 10000 server names and their services, as in `{a.example.com: web, \"*\": other}`\n"},
	{"listen: {address: ':1', sni: {}}" ROUTES,
	 "1:30: `sni` is a map of 1 to 10000 server names and their services, as in `{a.example.com: web, \"*\": other}`\n"},
	{"listen: {address: ':1', sni: {a.de: wbe}}" ROUTES, "1:37: there is no service `wbe`\n"},
	{"listen: {address: ':1', sni: {a.de: [a]}}" ROUTES, "1:37: `sni` needs a text, not a list\n"},
	{"listen: {address: ':1', sni: {'a.*': a}}" ROUTES,
	 "1:31: `a.*` may have `*` only as its first part, as in `*.example.com`\n"},
	{"listen: {address: ':1', sni: {'': a}}" ROUTES, "1:31: `` is no server name\n"},
	{"listen: {address: ':1', sni: {'[::1]': a}}" ROUTES,
	 "1:31: `[::1]` is an address: TLS sends none as a server name\n"},
	{"listen: {address: ':1', sni: {a.de: a, A.de.: a}}" ROUTES,
	 "1:40: the server name `a.de` is there twice: names are the same in any case\n"},
	{"listen: {address: ':1', sni: {'*': a, '*': a}}" ROUTES, "1:39: duplicate key `*`, first on line 1\n"},
	{"listen: {address: ':1', service: a, sni: {'*': a}}" ROUTES, "1:37: `service` or `sni`, not both\n"},
	{"listen: {address: ':1', service: a, via: off, upgrade: off}" ROUTES,
	 "1:37: `via` is about HTTP, which a listener with `service` does not read\n"
	 "1:47: `upgrade` is about HTTP, which a listener with `service` does not read\n"},
	{"listen: {address: ':1', sni: {'*': a}, forwarded: on}" ROUTES,
	 "1:40: `forwarded` is about HTTP, which a listener with `sni` does not read\n"},
	{"listen: {address: ':1', proxy_protocol: on}" ROUTES,
	 "1:25: `proxy_protocol` needs `trusted_proxies`: those whose headers are believed\n"},
	{"listen: {address: ':1', proxy_protocol: yes, trusted_proxies: 10.0.0.1}" ROUTES,
	 "1:41: `proxy_protocol` is one of off, on or optional, not `yes`\n"},
	{"listen: [{address: ':1', service: a}, ':2']\nservices: {a: []}", "1:1: nothing to serve: there are no `routes`\n"},
	{"services: {a: {endpoints: [], proxy_protocol: v3}}\nroutes: [{service: a}]",
	 "1:47: `proxy_protocol` is one of off, v1 or v2, not `v3`, did you mean `v1`?\n"},
	/* routes */
	{ROUTE("service: wbe"), "3:12: there is no service `wbe`, did you mean `web`?\n"},
	{ROUTE("service: nothing-like-it"), "3:12: there is no service `nothing-like-it`\n"},
	{ROUTE("servce: web"), "3:3: unknown key `servce` in a route, did you mean `service`?\n"},
	{ROUTE("path: /a"), "3:3: a route needs `service`, `redirect` or `answer`\n"},
	{ROUTE("{service: web, answer: {}}"), "3:18: a route has one action: `service` or `answer`\n"},
	{ROUTE("{service: web, path: api}"), "3:24: the path `api` must begin with `/`\n"},
	{ROUTE("{service: web, path: /a?b}"),
	 "3:24: the path `/a?b` has `?` or `#`: routes look at the path alone\n"},
	{ROUTE("{service: web, path: /a/../b}"),
	 "3:24: the path `/a/../b` has a `.` or `..` segment and would match nothing\n"},
	{ROUTE("{service: web, path: /a/%2E%2e}"),
	 "3:24: the path `/a/%2E%2e` has a `.` or `..` segment and would match nothing\n"},
	{ROUTE("{service: web, path: /a%2}"), "3:24: the path `/a%2` has a `%` that no two hex digits follow\n"},
	{ROUTE("{service: web, path: /%41}\n- {service: api, path: /A}"),
	 "4:3: the route on line 4 has the same host and path as that on line 3\n"},
	{ROUTE("{service: web, path: {prefix: /a, exact: /b}}"), "3:37: a path is one of `prefix`, `exact` and `regex`\n"},
	{ROUTE("{service: web, path: {}}"), "3:24: a path is one of `prefix`, `exact` and `regex`\n"},
	{ROUTE("{service: web, host: 'a:80'}"), "3:24: `a:80` has a port: routes look at the name alone\n"},
	{ROUTE("{service: web, host: 'a.*'}"),
	 "3:24: `a.*` may have `*` only as its first part, as in `*.example.com`\n"},
	{ROUTE("{service: web, host: [a..b]}"), "3:25: `a..b` has an empty part between dots\n"},
	{ROUTE("{service: web, path: {exact: /a}, strip_prefix: on}"),
	 "3:37: `strip_prefix` needs a path that is a prefix\n"},
	{ROUTE("{service: web, strip_prefix: on, replace_prefix: /x}"),
	 "3:36: `strip_prefix` or `replace_prefix`, not both\n"},
	{ROUTE("{answer: {}, replace_prefix: /x}"), "3:16: `replace_prefix` is for a route with a `service`\n"},
	{ROUTE("redirect: {}"), "3:13: a redirect needs `to`, or one of `scheme`, `host`, `port` and `path`\n"},
	{ROUTE("redirect: {status: 301}"), "3:13: a redirect needs `to`, or one of `scheme`, `host`, `port` and `path`\n"},
	{ROUTE("redirect: {stats: 301}"), "3:14: unknown key `stats` in a redirect, did you mean `status`?\n"},
	{ROUTE("redirect: {to: /x, host: a.de, path: {replace_full: /}}"),
	 "3:22: `host` cannot stand beside `to`, which says all of it\n"
	 "3:34: `path` cannot stand beside `to`, which says all of it\n"},
	{ROUTE("redirect: {scheme: ftp}"), "3:22: `scheme` is one of http or https, not `ftp`, did you mean `http`?\n"},
	{ROUTE("redirect: {scheme: htps}"), "3:22: `scheme` is one of http or https, not `htps`, did you mean `https`?\n"},
	{ROUTE("redirect: {scheme: ''}"), "3:22: `scheme` needs a text, not nothing\n"},
	{ROUTE("redirect: {host: 'a.de:80'}"), "3:20: `a.de:80` has a port: write it as `port`\n"},
	{ROUTE("redirect: {host: '*.a.de'}"), "3:20: `*.a.de` is not one host\n"},
	{ROUTE("redirect: {host: 'a.de/x'}"), "3:20: `a.de/x` is not a host name: no scheme and no path\n"},
	{ROUTE("redirect: {host: '{host}'}"), "3:20: `{host}` is not a host name\n"},
	{ROUTE("redirect: {port: 0}"), "3:20: `port` must be from 1 to 65535, not 0\n"},
	{ROUTE("redirect: {path: /x}"), "3:20: a new path is a map of keys, not a text\n"},
	{ROUTE("redirect: {path: {}}"), "3:20: a new path needs `replace_full` or `replace_prefix`\n"},
	{ROUTE("redirect: {path: {replace_full: /x, replace_prefix: /y}}"),
	 "3:39: `replace_full` or `replace_prefix`, not both\n"},
	{ROUTE("redirect: {path: {replace_full: x}}"), "3:35: the path `x` must begin with `/`\n"},
	{ROUTE("redirect: {path: {replace_full: '//evil.de'}}"), "3:35: the path `//evil.de` has `//` and would match nothing\n"},
	{ROUTE("redirect: {path: {replace_full: '/x?y'}}"),
	 "3:35: the path `/x?y` has `?` or `#`: routes look at the path alone\n"},
	{ROUTE("{path: {exact: /x}, redirect: {path: {replace_prefix: /y}}}"),
	 "3:41: `replace_prefix` needs a path that is a prefix\n"},
	{ROUTE("{matches: [{path: /x}, {path: /z}], redirect: {path: {replace_prefix: /y}}}"),
	 "3:57: `replace_prefix` needs the same prefix in all matches\n"},
	{ROUTE("redirect: {to: foo}"), "3:18: `foo` must begin with http://, https:// or /\n"},
	{ROUTE("redirect: {to: '/{path}'}"),
	 "3:18: `/{path}` begins with two slashes, which is another host to a browser\n"},
	{ROUTE("redirect: {to: 'https://{path}'}"), "3:18: `https://{path}` has no host\n"},
	{ROUTE("redirect: {to: 'https://a/{query}'}"),
	 "3:18: `{query}` is no placeholder; there are {host} and {path}\n"},
	{ROUTE("redirect: {to: /x, status: 300}"), "3:30: `status` is one of 301, 302, 303, 307 or 308, not `300`\n"},
	{ROUTE("answer: {status: 199}"), "3:20: `status` must be from 200 to 599, not 199\n"},
	{ROUTE("answer: {status: 304, body: x}"), "3:25: an answer with status 304 has no body\n"},
	{ROUTE("{service: web, request_headers: {set: {Host: x}}}"),
	 "3:42: `Host` cannot be changed here; see `host` of a service\n"},
	{ROUTE("{service: web, request_headers: {remove: [te]}}"),
	 "3:45: `te` belongs to one connection and cannot be changed here\n"},
	{ROUTE("{service: web, cors: {methods: PUT}}"), "3:24: `cors` needs `origins`\n"},
	{ROUTE("{service: web, cors: on}"), "3:24: `cors` is a map of keys, not a text\n"},
	{ROUTE("{service: web, cors: '*'}"), "3:24: `cors` is a map of keys, not a text: write `cors: {origins: \"*\"}`\n"},
	{ROUTE("{service: web, cors: {origins: []}}"), "3:34: `origins` is an empty list\n"},
	{ROUTE("{service: web, cors: {origins: [https://a.test, 'https://a.test/x', a.test, https://a.test]}}"),
	 "3:51: the origin `https://a.test/x` has a path: an origin ends with its host or port\n"
	 "3:71: the origin `a.test` has no scheme: an origin is scheme://host or scheme://host:port\n"
	 "3:79: `https://a.test` is there twice\n"},
	{ROUTE("{service: web, cors: {origins: 'https://*.a.test:443'}}"),
	 "3:34: the origin `https://*.a.test:443` has the scheme's own port, which a browser leaves out\n"},
	{ROUTE("{service: web, cors: {origins: '*', credentials: on, expose: [A, '*']}}"),
	 "3:34: with `credentials`, the origin `*` would let every site act as whoever visits it: name the origins\n"
	 "3:64: with `credentials`, browsers do not take `*` here: name the fields\n"},
	{"defaults:\n  cors: {origins: ['*'], credentials: on}\n" ROUTES,
	 "2:19: with `credentials`, the origin `*` would let every site act as whoever visits it: name the origins\n"},
	{ROUTE("{service: web, cors: {origins: '*', methods: put}}"), "3:48: methods are case-sensitive; did you mean PUT?\n"},
	{ROUTE("{service: web, cors: {origins: '*', headers: [X-A, 'b c', x-a]}}"),
	 "3:54: `b c` is not a header name\n3:61: `x-a` is there twice\n"},
	{ROUTE("{service: web, cors: {origins: '*', max_age: 8d}}"), "3:48: `max_age` must be from 0ms to 7d, or off, not 8d\n"},
	{ROUTE("{service: web, basic_auth: users}"), "3:30: `basic_auth` is a map of keys, not a text: write `basic_auth: {file: users}`\n"},
	{ROUTE("{service: web, basic_auth: {realm: x}}"), "3:30: `basic_auth` needs `file`\n"},
	{ROUTE("{service: web, basic_auth: {file: , realm: \"a\\nb\"}}"),
	 "3:31: `file` needs a text, not nothing\n3:46: a header's value has no control bytes, and no space at its ends\n"},
	{ROUTE("{service: web, basic_auth: {file: u, user_header: Content-Length}}"),
	 "3:53: `Content-Length` is the framing of a message and cannot be changed here\n"},
	{ROUTE("{service: web, basic_auth: {file: u, user_header: 'X User', user_headers: X}}"),
	 "3:53: `X User` is not a header name\n3:63: unknown key `user_headers` in `basic_auth`, did you mean `user_header`?\n"},
	{ROUTE("{service: web, response_headers: {add: {content-length: 1}}}"),
	 "3:43: `content-length` is the framing of a message and cannot be changed here\n"},
	{ROUTE("{service: web, response_headers: {add: {'a b': 1}}}"), "3:43: `a b` is not a header name\n"},
	{ROUTE("{service: web, response_headers: {add: {a: \"b\\nc\"}}}"),
	 "3:46: a header's value has no control bytes, and no space at its ends\n"},
	{ROUTE("{service: web, response_headers: {set: {a: 1, A: 2}}}"),
	 "3:49: `A` is there twice: names are the same in any case\n"},
	{ROUTE("service: web\n- service: api"),
	 "4:3: the route on line 4 has the same host and path as that on line 3\n"},
	{ROUTE("{service: web, host: A.de, path: /x/}\n- {service: api, host: [b.de, a.de.], path: /x}"),
	 "4:3: the route on line 4 has the same host and path as that on line 3\n"},
	{ROUTE("{service: web, host: [a.de, A.de]}"), "3:3: the route on line 3 has the host `a.de` twice\n"},
	{ROUTE("{service: web, path: /api/*}"),
	 "3:24: the path `/api/*` ends in `*`: a prefix needs none, write `/api`\n"},
	{ROUTE("{service: web, path: {prefix: /*}}"),
	 "3:33: the path `/*` ends in `*`: a prefix needs none, write `/`\n"},
	{ROUTE("{service: web, replace_prefix: /v2/**}"),
	 "3:34: the path `/v2/**` ends in `*`: a prefix needs none, write `/v2`\n"},
	{ROUTE("redirect: https://x/"),
	 "3:13: a redirect is a map of keys, not a text: write `redirect: {to: https://x/}`\n"},
	{ROUTE("redirect: https://x{path}"),
	 "3:13: a redirect is a map of keys, not a text: write `redirect: {to: \"https://x{path}\"}`\n"},
	{ROUTE("answer: 200"), "3:11: an answer is a map of keys, not a text: write `answer: {status: 200}`\n"},
	{ROUTE("answer: not here"),
	 "3:11: an answer is a map of keys, not a text: write `answer: {body: \"not here\"}`\n"},
	/* what a request must be like */
	{ROUTE("{service: web, path: {regex: /a, exact: /b}}"),
	 "3:36: a path is one of `prefix`, `exact` and `regex`\n"},
	{ROUTE("{service: web, path: {regex: ''}}"), "3:32: `regex` needs a text, not nothing\n"},
	{ROUTE("{service: web, path: {regex: \"a\\nb\"}}"),
	 "3:32: an expression has no control bytes; write `\\t` or `\\x09` for one\n"},
	{ROUTE("{service: web, method: get}"), "3:26: methods are case-sensitive; did you mean GET?\n"},
	{ROUTE("{service: web, method: [GET, Post]}"), "3:32: methods are case-sensitive; did you mean POST?\n"},
	{ROUTE("{service: web, method: 'G T'}"), "3:26: `G T` is not a method, such as GET\n"},
	{ROUTE("{service: web, method: [GET, GET]}"), "3:32: the method GET is there twice\n"},
	{ROUTE("{service: web, method: []}"), "3:26: `method` is an empty list; leave it out for any method\n"},
	{ROUTE("{service: web, method: {a: b}}"), "3:26: `method` needs a text or a list of them, not a map\n"},
	{ROUTE("{service: web, methods: GET}"), "3:18: unknown key `methods` in a route, did you mean `method`?\n"},
	{ROUTE("{service: web, headers: [a]}"), "3:27: `headers` needs a map of names and values, not a list\n"},
	{ROUTE("{service: web, headers: {'a b': c}}"), "3:28: `a b` is not a header name\n"},
	{ROUTE("{service: web, headers: {'': c}}"), "3:28: `` is not a header name\n"},
	{ROUTE("{service: web, headers: {a: \"b\\x01\"}}"),
	 "3:31: a header's value has no control bytes, and no space at its ends\n"},
	{ROUTE("{service: web, headers: {x-a: 1, b: 2, X-A: 3}}"),
	 "3:42: `X-A` is there twice: names are the same in any case\n"},
	{ROUTE("{service: web, headers: {a: 1, a: 2}}"), "3:34: duplicate key `a`, first on line 3\n"},
	{ROUTE("{service: web, headers: {a: [b]}}"), "3:31: a value to match is a text or `{ regex: ... }`, not a list\n"},
	{ROUTE("{service: web, headers: {a: {}}}"), "3:31: a value to match needs `regex`\n"},
	{ROUTE("{service: web, headers: {a: {regexp: b}}}"),
	 "3:32: unknown key `regexp` in a value to match, did you mean `regex`?\n"},
	{ROUTE("{service: web, headers: {a: {exact: b}}}"),
	 "3:32: unknown key `exact` in a value to match; it is a key of a path\n"},
	{ROUTE("{service: web, query: {'a=b': c}}"),
	 "3:26: `a=b` must be written as it is in a URL: `%3D` for the byte after `a`\n"},
	{ROUTE("{service: web, query: {a: 'b&c'}}"),
	 "3:29: `b&c` must be written as it is in a URL: `%26` for the byte after `b`\n"},
	{ROUTE("{service: web, query: {a: \xc3\xa9}}"),
	 "3:29: `\xc3\xa9` must be written as it is in a URL: `%C3` for the byte after ``\n"},
	{ROUTE("{service: web, query: {'': c}}"), "3:26: a query parameter needs a name\n"},
	{ROUTE("{service: web, matches: []}"), "3:27: `matches` is an empty list; leave it out for any request\n"},
	{ROUTE("{service: web, matches: /a}"), "3:27: `matches` is a list, not a text\n"},
	{ROUTE("{service: web, matches: [/a]}"), "3:28: a match is a map of keys, not a text\n"},
	{ROUTE("{service: web, matches: [{host: a}]}"),
	 "3:29: unknown key `host` in a match; it is a key of a service\n"},
	{ROUTE("{service: web, path: /a, method: GET, matches: [{}]}"),
	 "3:18: `path` cannot stand beside `matches`: write it in each of them\n"
	 "3:28: `method` cannot stand beside `matches`: write it in each of them\n"},
	{ROUTE("{service: web, headers: {a: b}, query: {a: b}, matches: [{}]}"),
	 "3:18: `headers` cannot stand beside `matches`: write it in each of them\n"
	 "3:35: `query` cannot stand beside `matches`: write it in each of them\n"},
	{ROUTE("{service: web, path: {regex: /a}, strip_prefix: on}"),
	 "3:37: `strip_prefix` needs a path that is a prefix\n"},
	{ROUTE("{service: web, strip_prefix: on, matches: [{path: /a}, {path: /b}]}"),
	 "3:18: `strip_prefix` needs the same prefix in all matches\n"},
	{ROUTE("{service: web, replace_prefix: /x, matches: [{path: /a}, {path: {exact: /a}}]}"),
	 "3:18: `replace_prefix` needs a path that is a prefix\n"},
	{ROUTE("{service: web, method: [PUT, GET]}\n- {service: api, method: GET}"),
	 "4:3: the route on line 4 has the same host and path (and the same method, headers and query) as that on line 3\n"},
	{ROUTE("{service: web, headers: {a: b, c: d}, query: {x: {regex: y}}}\n"
	       "- {service: api, query: {x: {regex: y}}, headers: {C: d, A: b}}"),
	 "4:3: the route on line 4 has the same host and path (and the same method, headers and query) as that on line 3\n"},
	{ROUTE("service: web\n  matches:\n  - path: /a\n  - {path: {regex: /a}}\n  - path: /a/"),
	 "7:5: the match on line 7 has the same host and path as that on line 5\n"},
	{ROUTE("{service: web, path: /a}\n- service: api\n  matches:\n  - path: /b\n  - path: /a"),
	 "7:5: the match on line 7 has the same host and path as that on line 3\n"},
	{"defaults: {path: /x}" ROUTES, "1:12: unknown key `path` in `defaults`; it is a key of a route\n"},
	{"defaults: {x_forwarded: apend}" ROUTES,
	 "1:25: `x_forwarded` is one of append, replace or off, not `apend`, did you mean `append`?\n"},
	/* variables */
	{"workers: ${NOPE}" ROUTES, "1:10: the variable `NOPE` is not set\n"},
	{"listen: 1.2.3.4:${NOPE}" ROUTES, "1:17: the variable `NOPE` is not set\n"},
	{"listen: \":${NOPE}\"" ROUTES, "1:11: the variable `NOPE` is not set\n"},
	{"workers: ${PORT" ROUTES, "1:10: `${` without `}`\n"},
	{"workers: ${}" ROUTES, "1:10: `${` must be followed by a name of letters, digits and `_`\n"},
	{"workers: ${PORT-1}" ROUTES, "1:10: a variable is ${NAME} or ${NAME:-default}\n"},
	{"workers: $PORT" ROUTES, "1:10: `$` begins a variable, as in ${NAME}; write `$$` for a dollar\n"},
	{"workers: ${PORT}" ROUTES, "1:10: `workers` must be from 1 to 256, or auto, not 3000\n"},
	{"workers: ${EMPTY}" ROUTES, "1:10: `workers` needs a text, not nothing\n"},
};

static void each_error_at_its_place(void **state)
{
	char out[4096];
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		parse_bad(bad[i].text, out, sizeof out);
		if (strcmp(out, bad[i].errors) == 0)
			continue;
		fprintf(stderr, "--- %s\nwant %sgot  %s", bad[i].text, bad[i].errors, out);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

static void ten_errors_are_ten(void **state)
{
	static const char text[] =
		"workers: 0\n"
		"listen: 80\n"
		"limit: {}\n"
		"timeouts: {head: 10}\n"
		"log: {level: loud}\n"
		"services: {web: d__:x, web: []}\n"
		"routes:\n"
		"- {service: wbe}\n"
		"- {path: x, service: web}\n"
		"- {host: a.de}\n";
	static const struct { unsigned line, column; } want[] = {
		{1, 10}, {2, 9}, {3, 1}, {4, 18}, {5, 14}, {6, 17}, {6, 24}, {8, 13}, {9, 10}, {10, 3},
	};
	struct conf_errors e;

	(void)state;
	conf_errors_init(&e);
	assert_null(conf_parse("t.yaml", str_of(text), NULL, &e));
	assert_int_equal(e.count, 10);
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(e.items[i].pos.line, want[i].line);
		assert_int_equal(e.items[i].pos.column, want[i].column);
	}
	conf_errors_fini(&e);
}

static void errors_are_printed(void **state)
{
	static const char text[] = "limits:\n  h\xc3\xa9\x61\x64: \"\xe2\x82\xac\"\nroutes: [{answer: {}}]\n";
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);
	struct conf_errors e;

	(void)state;
	conf_errors_init(&e);
	assert_null(conf_parse("a.yaml", str_of(text), NULL, &e));
	conf_errors_print(&e, f);
	fclose(f);
	assert_string_equal(out, "a.yaml:2:3: unknown key `h\xc3\xa9\x61\x64` in `limits`, did you mean `head`?\n"
			    "      h\xc3\xa9\x61\x64: \"\xe2\x82\xac\"\n      ^\n");
	free(out);
	conf_errors_fini(&e);
}

static void many_errors_are_counted(void **state)
{
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);
	struct conf_errors e;

	(void)state;
	fputs("routes:\n", f);
	for (int i = 0; i < 250; i++)
		fputs("- service: x\n", f);
	fflush(f);
	conf_errors_init(&e);
	assert_null(conf_parse("a.yaml", (struct str){out, n}, NULL, &e));
	assert_int_equal(e.count, CONF_ERRORS_MAX);
	assert_int_equal(e.more, 150);
	rewind(f);
	conf_errors_print(&e, f);
	fclose(f);
	assert_non_null(strstr(out, "\na.yaml: and 150 more\n"));
	free(out);
	conf_errors_fini(&e);
}

static void a_file_is_loaded(void **state)
{
	struct conf_errors e;

	(void)state;
	conf_errors_init(&e);
	assert_null(conf_load("/nonexistent/x.yaml", NULL, &e));
	assert_int_equal(e.count, 1);
	assert_string_equal(e.file, "/nonexistent/x.yaml");
	assert_string_equal(e.items[0].text.p, "cannot be opened: No such file or directory");
	conf_errors_fini(&e);
	conf_errors_init(&e);
	assert_null(conf_load("/", NULL, &e));
	assert_string_equal(e.items[0].text.p, "cannot be read: Is a directory");
	conf_errors_fini(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_error_at_its_place),
		cmocka_unit_test(ten_errors_are_ten),
		cmocka_unit_test(errors_are_printed),
		cmocka_unit_test(many_errors_are_counted),
		cmocka_unit_test(a_file_is_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
