#include "base/histogram.h"

static const struct {
	int64_t us;
	const char *seconds;
} BOUNDS[HISTOGRAM_BUCKETS] = {
    {500, "0.0005"},
    {1000, "0.001"},
    {2500, "0.0025"},
    {5000, "0.005"},
    {10000, "0.01"},
    {25000, "0.025"},
    {50000, "0.05"},
    {100000, "0.1"},
    {250000, "0.25"},
    {1000000, "1"},
    {2500000, "2.5"},
    {10000000, "10"},
    {30000000, "30"},
    {60000000, "60"},
};

void histogram_add(struct histogram *h, int64_t us)
{
	int i = 0;

	if (us < 0)
		us = 0;
	while (i < HISTOGRAM_BUCKETS && us > BOUNDS[i].us)
		i++;
	h->counts[i]++;
	h->sum_us += us;
}

void histogram_merge(struct histogram *h, const struct histogram *more)
{
	for (int i = 0; i <= HISTOGRAM_BUCKETS; i++)
		h->counts[i] += more->counts[i];
	h->sum_us += more->sum_us;
}

void histogram_write(
    struct buf *out, const struct histogram *h, const char *name, const char *labels)
{
	const char *comma = *labels ? "," : "", *open = *labels ? "{" : "",
		   *close = *labels ? "}" : "";
	int64_t n = 0;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		n += h->counts[i];
		buf_appendf(out, "%s_bucket{%s%sle=\"%s\"} %lld\n", name, labels, comma,
		    BOUNDS[i].seconds, (long long)n);
	}
	n += h->counts[HISTOGRAM_BUCKETS];
	buf_appendf(out, "%s_bucket{%s%sle=\"+Inf\"} %lld\n", name, labels, comma, (long long)n);
	buf_appendf(out, "%s_sum%s%s%s %.6f\n", name, open, labels, close, (double)h->sum_us / 1e6);
	buf_appendf(out, "%s_count%s%s%s %lld\n", name, open, labels, close, (long long)n);
}
