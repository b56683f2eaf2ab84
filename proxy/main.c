/* thimble: the command line.  Exit codes: 0 done, 1 it could not run, 2 the call or the
 * configuration is wrong. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conf/conf.h"
#include "proxy/demo.h"
#include "proxy/server.h"
#include "proxy/settings.h"

#define EXIT_USAGE 2

static const char usage[] =
	"thimble, a reverse proxy whose connections cost almost nothing\n"
	"\n"
	"  thimble run                           a demo on 127.0.0.1:8080, to look at\n"
	"  thimble run --to http://HOST:PORT     proxy everything to one address\n"
	"              [--listen ADDRESS]        listen there instead of 127.0.0.1:8080\n"
	"  thimble run -c FILE                   serve a configuration (\"-\": standard input)\n"
	"  thimble check -c FILE                 check a configuration, offline, all errors at once\n"
	"  thimble schema                        the JSON Schema of configurations, for editors\n"
	"  thimble keys                          every key with its values, default and meaning\n"
	"  thimble version\n"
	"  thimble help\n"
	"\n"
	"SIGTERM and SIGINT finish what runs and end; twice ends at once. SIGUSR1 opens log files again.\n"
	"docs/configuration.md describes the configuration.\n";

struct options {
	const char *command, *file, *to, *listen;
};

static int wrong(const char *what, const char *which)
{
	fprintf(stderr, "thimble: %s%s%s\nTry `thimble help`.\n", what, which ? " " : "", which ? which : "");
	return EXIT_USAGE;
}

/* The value of an option: behind '=', or the next argument. */
static const char *value(int argc, char **argv, int *i, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(argv[*i], name, n) != 0)
		return NULL;
	if (argv[*i][n] == '=')
		return argv[*i] + n + 1;
	if (argv[*i][n] != '\0' || *i + 1 >= argc)
		return NULL;
	return argv[++*i];
}

static int parse(int argc, char **argv, struct options *o)
{
	const char *v;

	if (argc < 2)
		return wrong("a command is needed: run, check, schema, keys, version or help", NULL);
	o->command = argv[1];
	for (int i = 2; i < argc; i++) {
		const char *arg = argv[i];

		if (!strcmp(arg, "-h") || !strcmp(arg, "--help")) {
			o->command = "help";
			return 0;
		}
		if ((v = value(argc, argv, &i, "-c")) || (v = value(argc, argv, &i, "--config")))
			o->file = v;
		else if ((v = value(argc, argv, &i, "--to")))
			o->to = v;
		else if ((v = value(argc, argv, &i, "--listen")))
			o->listen = v;
		else if (!strcmp(arg, "-c") || !strcmp(arg, "--config") || !strcmp(arg, "--to") || !strcmp(arg, "--listen"))
			return wrong("a value is needed behind", arg);
		else
			return wrong("unknown argument", arg);
	}
	return 0;
}

/* NULL: the errors have been printed. */
static struct conf *configure(const struct options *o, uint16_t demo_port)
{
	struct conf_errors errors;
	struct conf *c;
	char to[32];

	conf_errors_init(&errors);
	snprintf(to, sizeof to, "http://127.0.0.1:%u", demo_port);
	if (o->file)
		c = conf_load(o->file, getenv, &errors);
	else
		c = conf_for_target(o->to ? o->to : to, o->listen, &errors);
	if (!c)
		conf_errors_print(&errors, stderr);
	conf_errors_fini(&errors);
	return c;
}

static int run(const struct options *o)
{
	const char *hint = NULL;
	uint16_t port = 0;
	struct conf *c;

	if (o->file && (o->to || o->listen))
		return wrong("-c goes without --to and --listen", NULL);
	if (!o->file && !o->to) {
		port = demo_start();
		if (!port) {
			fprintf(stderr, "thimble: the demo origin could not start\n");
			return EXIT_FAILURE;
		}
		hint = "nothing is configured, so a demo origin answers; try: curl http://127.0.0.1:8080/hello";
	}
	c = configure(o, port);
	if (!c)
		return EXIT_USAGE;
	return server_run(c, o->listen ? NULL : hint);
}

static int check(const struct options *o)
{
	struct conf *c;

	if (!o->file || o->to || o->listen)
		return wrong("check needs -c FILE, and nothing else", NULL);
	c = configure(o, 0);
	if (!c || !settings_check(c, time(NULL), stderr)) {	/* run does the same when it builds its own snapshot */
		conf_free(c);
		return EXIT_USAGE;
	}
	conf_warnings_print(c, stderr);
	printf("%s: good: %zu listener%s, %zu route%s, %zu service%s\n", o->file, c->listen_count, c->listen_count == 1 ? "" : "s",
	       c->route_count, c->route_count == 1 ? "" : "s", c->service_count, c->service_count == 1 ? "" : "s");
	conf_free(c);
	return EXIT_SUCCESS;
}

/* What `print` prints, for a command that stands alone. */
static int tell(const struct options *o, void (*print)(FILE *to))
{
	if (o->file || o->to || o->listen)
		return wrong("nothing goes with", o->command);
	print(stdout);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_SUCCESS;
	fprintf(stderr, "thimble: the %s could not be written: %s\n", o->command, strerror(errno));
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	int code = parse(argc, argv, &o);

	if (code)
		return code;
	if (!strcmp(o.command, "run"))
		return run(&o);
	if (!strcmp(o.command, "check"))
		return check(&o);
	if (!strcmp(o.command, "schema"))
		return tell(&o, conf_schema_print);
	if (!strcmp(o.command, "keys"))
		return tell(&o, conf_page_print);
	if (!strcmp(o.command, "version") || !strcmp(o.command, "--version") || !strcmp(o.command, "-V")) {
		puts("thimble " THIMBLE_VERSION);
		return EXIT_SUCCESS;
	}
	if (!strcmp(o.command, "help") || !strcmp(o.command, "--help") || !strcmp(o.command, "-h")) {
		fputs(usage, stdout);
		return EXIT_SUCCESS;
	}
	return wrong("unknown command", o.command);
}
