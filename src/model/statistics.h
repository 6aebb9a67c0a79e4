/* Rates that are estimated from few runs. Pure.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

struct rate {
	int n_hits, n; /* 0 <= n_hits <= n */
};

/* Wilson's score interval at 95 % for the rate behind n_hits of n (E. B. Wilson, JASA 22, 1927). n 0: from 0 to 1. */
void rate_interval(struct rate r, double *ret_low, double *ret_high);

/* How likely at least a.n_hits of the hits would be among a's runs if both had the same rate: Fisher's exact test,
 * one-sided (R. A. Fisher, 1922). From 0 to 1; small: a has the higher rate. The time grows with a.n + b.n. */
double rate_chance_of_higher(struct rate a, struct rate b);
