/* Door: what is known of how long an endpoint keeps idle connections.  Owns nothing; asked by the pool when it
 * keeps a connection, told by it when one was closed.
 * A time is a step: four from each power of two to the next, from IDLE_LEAST_MS on, in six bits; 0 is none.
 * Two such words from two workers at once may lose one of the two: the next says it again. */
#include "dispatch/idle.h"

#include <stdbool.h>

#define STEPS 63u
#define DOUBT_MINUTES 5u	/* after that what was learned is taken two steps longer, and again */
#define FORGET_MINUTES 60u
#define MINUTES 127u		/* a mask */

struct known {
	uint32_t learned, last, told;	/* steps */
	uint32_t learned_at, told_at;	/* minutes, modulo 128 */
};

static struct known unpack(uint32_t w)
{
	return (struct known){w & 63, w >> 6 & 63, w >> 12 & 63, w >> 18 & MINUTES, w >> 25};
}

static uint32_t pack(struct known k)
{
	return k.learned | k.last << 6 | k.told << 12 | k.learned_at << 18 | k.told_at << 25;
}

static uint32_t step_ms(uint32_t step)
{
	uint32_t octave = (step - 1) / 4, part = (step - 1) % 4;

	return (IDLE_LEAST_MS << octave) / 4 * (4 + part);
}

/* The longest that is not longer than `ms`, at least the first. */
static uint32_t step_of(uint32_t ms)
{
	uint32_t step = 1;

	while (step < STEPS && step_ms(step + 1) <= ms)
		step++;
	return step;
}

static uint32_t minute_of(uint32_t now_ms)
{
	return now_ms / 60000 & MINUTES;
}

static uint32_t minutes_since(uint32_t then, uint32_t now_ms)
{
	return (minute_of(now_ms) - then) & MINUTES;
}

static void put(_Atomic uint32_t *word, uint32_t old, struct known k)
{
	uint32_t new = pack(k);

	if (new != old)
		atomic_store_explicit(word, new, memory_order_relaxed);
}

void idle_told(_Atomic uint32_t *word, uint32_t seconds, uint32_t now_ms)
{
	uint32_t old = atomic_load_explicit(word, memory_order_relaxed);
	struct known k = unpack(old);

	if (seconds > 3600)
		seconds = 3600;
	k.told = step_of(seconds > 1 ? seconds * 1000 - 1000 : seconds * 500);
	k.told_at = minute_of(now_ms);
	put(word, old, k);
}

void idle_closed(_Atomic uint32_t *word, uint32_t idle_ms, uint32_t now_ms)
{
	uint32_t old = atomic_load_explicit(word, memory_order_relaxed), step, before;
	struct known k = unpack(old);

	if (idle_ms < IDLE_LEAST_MS)
		return;
	step = step_of(idle_ms);
	before = k.last;
	k.last = step;
	if (before && before + 1 >= step && step + 1 >= before) {
		k.learned = before < step ? before : step;
		k.learned -= k.learned > 1;	/* a seventh less, at least */
		k.learned_at = minute_of(now_ms);
	}
	put(word, old, k);
}

/* In halves of octaves, so that there are few. */
static uint32_t keep_of(uint32_t step)
{
	return step_ms(step - (step - 1) % 2);
}

uint32_t idle_keep_ms(_Atomic uint32_t *word, uint32_t max_ms, uint32_t now_ms)
{
	uint32_t old = atomic_load_explicit(word, memory_order_relaxed), age, step, ms = max_ms;
	struct known k;

	if (!old)
		return max_ms;
	k = unpack(old);
	age = minutes_since(k.learned_at, now_ms);
	if (age >= FORGET_MINUTES)
		k.learned = 0;
	if (k.learned) {
		step = k.learned + age / DOUBT_MINUTES * 2;
		if (step < STEPS && keep_of(step) < ms)
			ms = keep_of(step);
	}
	if (minutes_since(k.told_at, now_ms) >= FORGET_MINUTES)
		k.told = 0;
	if (k.told && keep_of(k.told) < ms)
		ms = keep_of(k.told);
	put(word, old, k);
	return ms;
}
