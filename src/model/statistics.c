#include "model/statistics.h"

#include <math.h>

static const double Z_95 = 1.959963984540054; /* the standard normal distribution's 97.5 % quantile */

void rate_interval(struct rate r, double *ret_low, double *ret_high)
{
	double n = r.n, p, middle, half;

	*ret_low = 0;
	*ret_high = 1;
	if (r.n <= 0)
		return;
	p = r.n_hits / n;
	middle = p + Z_95 * Z_95 / (2 * n);
	half = Z_95 * sqrt(p * (1 - p) / n + Z_95 * Z_95 / (4 * n * n));
	if (r.n_hits > 0)
		*ret_low = (middle - half) / (1 + Z_95 * Z_95 / n);
	if (r.n_hits < r.n)
		*ret_high = (middle + half) / (1 + Z_95 * Z_95 / n);
}

static double log_factorial(int n)
{
	int sign; /* lgamma() itself keeps it in a variable that all threads share */

	return lgamma_r(n + 1.0, &sign);
}

static double log_choose(int n, int k) { return log_factorial(n) - log_factorial(k) - log_factorial(n - k); }

double rate_chance_of_higher(struct rate a, struct rate b)
{
	int n_hits = a.n_hits + b.n_hits, most = n_hits < a.n ? n_hits : a.n;
	double sum = 0;

	for (int i = a.n_hits; i <= most; i++)
		if (n_hits - i <= b.n)
			sum += exp(log_choose(a.n, i) + log_choose(b.n, n_hits - i) - log_choose(a.n + b.n, n_hits));
	return sum < 1 ? sum : 1;
}
