/*
 * scalar: counts, durations, sizes and yes-or-no.
 *
 * Purpose   what a person writes for a number (`10s`, `64KiB`, `on`), and back.
 * Owns      nothing.
 * Called by walk.c, tests.
 * Never     guesses a unit, or wraps around: too large is an error.
 */
#include "conf/scalar.h"

#include <inttypes.h>
#include <stdio.h>

struct unit {
	struct str name;
	uint64_t factor;
};

static const struct unit durations[] = {
	{{"d", 1}, 86400000}, {{"h", 1}, 3600000}, {{"m", 1}, 60000}, {{"s", 1}, 1000}, {{"ms", 2}, 1},
};

static const struct unit sizes[] = {
	{{"GiB", 3}, 1 << 30}, {{"MiB", 3}, 1 << 20}, {{"KiB", 3}, 1 << 10}, {{"GB", 2}, 1000000000},
	{{"MB", 2}, 1000000}, {{"KB", 2}, 1000}, {{"B", 1}, 1},
};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* The digits at the front of `s`, which are taken off it. */
static const char *digits_take(struct str *s, uint64_t *out)
{
	uint64_t v = 0;
	size_t n = 0;

	for (; n < s->n && s->p[n] >= '0' && s->p[n] <= '9'; n++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(s->p[n] - '0'), &v))
			return "is too large";
	if (!n)
		return "is not a number";
	s->p += n;
	s->n -= n;
	*out = v;
	return NULL;
}

const char *conf_read_count(struct str s, uint64_t *out)
{
	uint64_t v;
	const char *wrong = digits_take(&s, &v);

	if (wrong)
		return wrong;
	if (s.n)
		return "is not a whole number";
	*out = v;
	return NULL;
}

static const char *unit_apply(const struct unit *units, size_t n, struct str name, uint64_t v, uint64_t *out)
{
	for (size_t i = 0; i < n; i++) {
		if (!str_ieq(units[i].name, name))
			continue;
		if (__builtin_mul_overflow(v, units[i].factor, &v))
			return "is too large";
		*out = v;
		return NULL;
	}
	return "";
}

const char *conf_read_duration(struct str s, uint64_t *ms)
{
	uint64_t v;
	const char *wrong = digits_take(&s, &v);

	if (wrong)
		return strcmp(wrong, "is too large") ? "is not a duration, such as 500ms, 10s, 5m, 1h or 1d" : wrong;
	if (!s.n)
		return "needs a unit: ms, s, m, h or d";
	wrong = unit_apply(durations, COUNT(durations), s, v, ms);
	return wrong && !*wrong ? "is not a duration, such as 500ms, 10s, 5m, 1h or 1d" : wrong;
}

const char *conf_read_size(struct str s, uint64_t *bytes)
{
	uint64_t v;
	const char *wrong = digits_take(&s, &v);

	if (wrong)
		return strcmp(wrong, "is too large") ? "is not a size, such as 512B, 64KiB or 10MiB" : wrong;
	if (!s.n)
		return "needs a unit: B, KiB, MiB, GiB, KB, MB or GB";
	wrong = unit_apply(sizes, COUNT(sizes), s, v, bytes);
	return wrong && !*wrong ? "is not a size; the units are B, KiB, MiB, GiB, KB, MB and GB" : wrong;
}

const char *conf_read_bool(struct str s, bool *out)
{
	if (str_eq(s, STR("true")) || str_eq(s, STR("on")) || str_eq(s, STR("yes")))
		*out = true;
	else if (str_eq(s, STR("false")) || str_eq(s, STR("off")) || str_eq(s, STR("no")))
		*out = false;
	else
		return "is neither `on` nor `off`";
	return NULL;
}

static void unit_write(const struct unit *units, size_t n, uint64_t v, char *out)
{
	for (size_t i = 0; i < n; i++) {
		if (v % units[i].factor || (!v && i + 1 < n))
			continue;
		snprintf(out, CONF_NUMBER_TEXT, "%" PRIu64 "%s", v / units[i].factor, units[i].name.p);
		return;
	}
}

void conf_write_duration(uint64_t ms, char out[CONF_NUMBER_TEXT])
{
	unit_write(durations, COUNT(durations), ms, out);
}

void conf_write_size(uint64_t bytes, char out[CONF_NUMBER_TEXT])
{
	unit_write(sizes, COUNT(sizes), bytes, out);
}
