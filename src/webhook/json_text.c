#include "webhook/json_text.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

/* The first byte from p on that is not plain: a quote, a backslash, a control byte or part
 * of a sequence of several bytes. As signed bytes the last two are all below 0x20. */
static const char *skip_plain(const char *p, const char *end)
{
#if defined(__SSE2__)
	const __m128i quote = _mm_set1_epi8('"');
	const __m128i backslash = _mm_set1_epi8('\\');
	const __m128i space = _mm_set1_epi8(0x20);

	for (; end - p >= 16; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i special = _mm_or_si128(_mm_cmplt_epi8(v, space),
		    _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)));
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
		uint8x16_t special = vorrq_u8(
		    vcltq_s8(v, space), vorrq_u8(vceqq_s8(v, quote), vceqq_s8(v, backslash)));

		if (vmaxvq_u8(special))
			break;
	}
#endif
	while ((signed char)*p >= 0x20 && *p != '"' && *p != '\\')
		p++;
	return p;
}

/* The value of four hexadecimal digits, or -1. */
static int hex4(const char *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		char c = p[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

static bool is_high_surrogate(int unit)
{
	return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low_surrogate(int unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* Length of the escape at p (a backslash), 0 when it is none. */
static int escape_length(const char *p)
{
	int unit;

	if (p[1] != 'u')
		return p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
	unit = hex4(p + 2);
	if (unit < 0 || is_low_surrogate(unit))
		return 0;
	if (!is_high_surrogate(unit))
		return 6;
	return p[6] == '\\' && p[7] == 'u' && is_low_surrogate(hex4(p + 8)) ? 12 : 0;
}

static bool is_tail(char c, unsigned char low, unsigned char high)
{
	return (unsigned char)c >= low && (unsigned char)c <= high;
}

/* Length of the UTF-8 sequence at p, whose first byte is not ASCII; 0 when it is none
 * (RFC 3629 section 4). */
static int utf8_length(const char *p)
{
	unsigned char first = (unsigned char)p[0];

	if (first >= 0xc2 && first <= 0xdf)
		return is_tail(p[1], 0x80, 0xbf) ? 2 : 0;
	if (first >= 0xe0 && first <= 0xef) {
		unsigned char low = first == 0xe0 ? 0xa0 : 0x80;
		unsigned char high = first == 0xed ? 0x9f : 0xbf;

		return is_tail(p[1], low, high) && is_tail(p[2], 0x80, 0xbf) ? 3 : 0;
	}
	if (first >= 0xf0 && first <= 0xf4) {
		unsigned char low = first == 0xf0 ? 0x90 : 0x80;
		unsigned char high = first == 0xf4 ? 0x8f : 0xbf;

		return is_tail(p[1], low, high) && is_tail(p[2], 0x80, 0xbf) &&
			       is_tail(p[3], 0x80, 0xbf)
			   ? 4
			   : 0;
	}
	return 0;
}

static const char *why_not(const char *p, const char *end)
{
	if (*p == '\\')
		return "a wrong escape in a string";
	if ((unsigned char)*p >= 0x80)
		return "a string that is not UTF-8";
	return p == end ? "a string without an end" : "a control byte in a string";
}

const char *json_text_end(
    const char *p, const char *end, bool *ret_has_escape, const char **ret_why, const char **ret_at)
{
	*ret_has_escape = false;
	for (;;) {
		int length = 0;

		p = skip_plain(p, end);
		if (*p == '"')
			return p;
		if (*p == '\\') {
			*ret_has_escape = true;
			length = escape_length(p);
		} else if ((unsigned char)*p >= 0x80) {
			length = utf8_length(p);
		}
		if (length == 0) {
			*ret_why = why_not(p, end);
			*ret_at = p;
			return NULL;
		}
		p += length;
	}
}

static size_t utf8_put(uint32_t code, char out[4])
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Decodes the escape at *p and moves behind it. */
static size_t decode_escape(const char **p, char out[4])
{
	static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
	const char *name = strchr(names, (*p)[1]);
	uint32_t code = (unsigned char)(*p)[1];
	int length = 2;

	if (code == 'u') {
		int unit = hex4(*p + 2);

		code = (uint32_t)unit;
		length = 6;
		if (is_high_surrogate(unit)) {
			code =
			    0x10000 + ((code - 0xd800) << 10) + (uint32_t)(hex4(*p + 8) - 0xdc00);
			length = 12;
		}
	} else if (name) {
		code = (unsigned char)values[name - names];
	}
	*p += length;
	return utf8_put(code, out);
}

bool json_text_decode(const char *p, const char *end, char *out, size_t out_bytes)
{
	size_t used = 0;

	while (p < end) {
		char bytes[4];
		size_t n = 1;

		if (*p == '\\')
			n = decode_escape(&p, bytes);
		else
			bytes[0] = *p++;
		if (bytes[0] == '\0' || used + n >= out_bytes)
			return false;
		memcpy(out + used, bytes, n);
		used += n;
	}
	out[used] = '\0';
	return true;
}
