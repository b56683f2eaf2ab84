/*
 * number: the readers of numbers, switches and words.
 *
 * Purpose   one value of one line, held against the bounds and words of its key.
 * Owns      nothing.
 * Called by walk.c through conf_reader_of().
 * Never     knows a key: bounds and words come from the table.
 */
#include "conf/scalar.h"
#include "conf/walk.h"

#include <inttypes.h>

static const char *number_parse(const struct conf_key *k, struct str s, uint64_t *v)
{
	if (k->type == CONF_T_DURATION)
		return conf_read_duration(s, v);
	return k->type == CONF_T_SIZE ? conf_read_size(s, v) : conf_read_count(s, v);
}

static void number_write(const struct conf_key *k, uint64_t v, char out[CONF_NUMBER_TEXT])
{
	if (k->type == CONF_T_DURATION)
		conf_write_duration(v, out);
	else if (k->type == CONF_T_SIZE)
		conf_write_size(v, out);
	else
		snprintf(out, CONF_NUMBER_TEXT, "%" PRIu64, v);
}

static void number_store(const struct conf_key *k, uint64_t v, void *at)
{
	if (k->type == CONF_T_COUNT)
		*(uint32_t *)at = (uint32_t)v;
	else
		*(uint64_t *)at = v;
}

/* `off` or `auto`, where the key has it; `0` is the same where `off` means zero. */
static bool is_word(const struct conf_key *k, struct str s)
{
	if (!k->words)
		return false;
	return str_eq(s, str_of(k->words)) || (!k->word_value && strcmp(k->words, "off") == 0 && str_eq(s, STR("0")));
}

void conf_read_number(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	const char *wrong, *or = k->words ? ", or " : "", *word = k->words ? k->words : "";
	char min[CONF_NUMBER_TEXT], max[CONF_NUMBER_TEXT];
	uint64_t v = 0;

	if (!conf_walk_text(w, k, n))
		return;
	if (is_word(k, n->text)) {
		number_store(k, k->word_value, at);
		return;
	}
	wrong = number_parse(k, n->text, &v);
	if (!wrong && v >= k->min && v <= k->max) {
		number_store(k, v, at);
		return;
	}
	number_write(k, k->min, min);
	number_write(k, k->max, max);
	if (wrong && strcmp(wrong, "is too large"))
		conf_errors_add(w->errors, n->pos, "`%.60s` %s%s%s", n->text.p, wrong, or, word);
	else
		conf_errors_add(w->errors, n->pos, "`%s` must be from %s to %s%s%s, not %.60s", k->name, min, max, or, word,
				n->text.p);
}

void conf_read_flag(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	const char *wrong;

	if (!conf_walk_text(w, k, n))
		return;
	wrong = conf_read_bool(n->text, at);
	if (wrong)
		conf_errors_add(w->errors, n->pos, "`%.60s` %s", n->text.p, wrong);
}

/* "a|b|c" as "a, b or c". */
static void words_list(const char *words, char *out, size_t size)
{
	size_t used = 0;

	while (*words && used + 1 < size) {
		size_t n = strcspn(words, "|");
		const char *after = !words[n] || !n ? "" : strchr(words + n + 1, '|') ? ", " : " or ";
		int m = snprintf(out + used, size - used, "%.*s%s", (int)n, words, after);

		used += (size_t)m;
		words += n + (words[n] == '|');
	}
}

static void word_wrong(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n,
		       const struct conf_near *near)
{
	char words[128] = "";

	words_list(k->words, words, sizeof words);
	conf_errors_add(w->errors, n->pos, "`%s` is one of %s, not `%.60s`%s", k->name, words, n->text.p,
			conf_walk_hint(w, near));
}

void conf_read_word(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	struct conf_near near = {.word = n->text};
	int i;

	if (!conf_walk_text(w, k, n))
		return;
	i = conf_word_find(k->words, n->text, &near);
	if (i < 0)
		word_wrong(w, k, n, &near);
	else
		memcpy(at, &i, sizeof i);	/* enums have the size of int */
}

void conf_read_status(struct conf_walk *w, const struct conf_key *k, const struct conf_node *n, void *at)
{
	uint64_t v;

	if (!k->words) {
		struct conf_key count = *k;

		count.type = CONF_T_COUNT;
		conf_read_number(w, &count, n, at);
		return;
	}
	if (!conf_walk_text(w, k, n))
		return;
	if (conf_word_find(k->words, n->text, NULL) < 0 || conf_read_count(n->text, &v))
		word_wrong(w, k, n, &(struct conf_near){0});
	else
		*(uint32_t *)at = (uint32_t)v;
}
