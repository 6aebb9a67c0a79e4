/* The loop in which the scans of JSON texts spend their time, inline. Thread: any. */
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

	for (; end - p >= 16; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i special = _mm_or_si128(
		    _mm_cmplt_epi8(v, space), _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)));
		int mask = _mm_movemask_epi8(special);

		if (mask)
			return p + __builtin_ctz((unsigned)mask);
	}
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
