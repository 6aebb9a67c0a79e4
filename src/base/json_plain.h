/* The loops in which the scans of JSON texts spend their time, inline. Thread: any; a struct json_marks belongs to one. */
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Inside a string: the first byte from p on that is not plain: a quote, a backslash, a control byte, or part of a sequence
 * of several bytes; or `end`. As signed bytes the last two are below 0x20. */
static inline const char *json_skip_plain(const char *p, const char *end)
{
#if defined(__SSE2__)
	const __m128i quote = _mm_set1_epi8('"');
	const __m128i backslash = _mm_set1_epi8('\\');
	const __m128i space = _mm_set1_epi8(0x20);
	bool is_short = end - p < 16;

	/* The last 16 bytes are looked at together, too. Those of them that were looked at before are plain. */
	for (; !is_short && p < end; p += 16) {
		const char *at = end - p < 16 ? end - 16 : p;
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i special = _mm_or_si128(
		    _mm_cmplt_epi8(v, space), _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)));
		int mask = _mm_movemask_epi8(special);

		if (mask)
			return at + __builtin_ctz((unsigned)mask);
	}
	if (!is_short)
		return end;
#elif defined(__ARM_NEON) && defined(__aarch64__)
	const int8x16_t quote = vdupq_n_s8('"');
	const int8x16_t backslash = vdupq_n_s8('\\');
	const int8x16_t space = vdupq_n_s8(0x20);

	for (; end - p >= 16; p += 16) {
		int8x16_t v = vld1q_s8((const int8_t *)p);
		uint8x16_t special = vorrq_u8(vcltq_s8(v, space), vorrq_u8(vceqq_s8(v, quote), vceqq_s8(v, backslash)));

		if (vmaxvq_u8(special))
			break;
	}
#endif
	while (p < end && (signed char)*p >= 0x20 && *p != '"' && *p != '\\')
		p++;
	return p;
}

/* The same places for a scan that asks for them in order, where most strings are shorter than 64 bytes: each byte is looked at
 * once, and a place that is known already costs a few instructions. */
struct json_marks {
	const char *known, *end; /* `bits` stands for the 64 bytes before `known` */
	uint64_t bits;           /* the lowest is that of the first byte; set: it is not plain */
};

static inline void json_marks_begin(struct json_marks *m, const char *text, const char *end)
{
	*m = (struct json_marks){.known = text, .end = end};
}

/* For json_marks_next(), which is short so that it is inline: looks at the bytes that are not known yet. */
const char *json_marks_go_on(struct json_marks *m, const char *p);

/* As json_skip_plain(p, end). p is not before the place that an earlier call returned. */
static inline const char *json_marks_next(struct json_marks *m, const char *p)
{
	uint64_t bits = p < m->known ? m->bits >> (64 - (m->known - p)) : 0;

	return bits ? p + __builtin_ctzll(bits) : json_marks_go_on(m, p);
}
