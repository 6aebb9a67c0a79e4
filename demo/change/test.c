/* Compares with the same in double precision and writes JUnit to the file that it is given. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "addmm_relu.h"

static double reference(int m, int k, double alpha, const float *a, const float *b, double beta, double c, int i, int j)
{
	double sum = 0;

	for (int l = 0; l < k; l++)
		sum += (double)a[i * k + l] * b[l * m + j];
	sum = alpha * sum + beta * c;
	return sum > 0 ? sum : 0;
}

/* The largest error over the result, relative to the length of the sums. */
static double largest_error(int n, int m, int k, float alpha, float beta)
{
	float *a = malloc(sizeof(*a) * n * k), *b = malloc(sizeof(*b) * k * m), *c = malloc(sizeof(*c) * n * m), *out = malloc(sizeof(*out) * n * m);
	double worst = 0;

	for (int i = 0; i < n * k; i++)
		a[i] = (float)drand48() - 0.5f;
	for (int i = 0; i < k * m; i++)
		b[i] = (float)drand48() - 0.5f;
	for (int i = 0; i < n * m; i++)
		c[i] = (float)drand48() - 0.5f;
	addmm_relu(n, m, k, alpha, a, b, beta, c, out);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < m; j++)
			worst = fmax(worst, fabs(out[i * m + j] - reference(m, k, alpha, a, b, beta, c[i * m + j], i, j)) / sqrt(k));
	free(a), free(b), free(c), free(out);
	return worst;
}

int main(int argc, char **argv)
{
	static const struct { const char *name; int n, m, k; float alpha, beta; } cases[] = {
		{"square", 256, 256, 256, 1, 1}, {"tall", 1024, 8, 64, 1, 1}, {"wide", 8, 1024, 64, 1, 0.5f},
		{"one row", 1, 512, 512, 2, 1}, {"no bias", 96, 96, 96, 1, 0}, {"one element", 1, 1, 1, 1, 1},
	};
	FILE *f = argc > 1 ? fopen(argv[1], "w") : stdout;
	int n_wrong = 0;

	if (!f)
		return 2;
	fprintf(f, "<testsuites><testsuite name=\"unit\">\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		clock_t begun = clock();
		double error = largest_error(cases[i].n, cases[i].m, cases[i].k, cases[i].alpha, cases[i].beta);
		double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
		int is_wrong = !(error < 1e-5);

		printf("%-4s addmm_relu %-12s error %.1e  %6.3f s\n", is_wrong ? "FAIL" : "ok", cases[i].name, error, seconds);
		fprintf(f, "<testcase name=\"addmm_relu: %s\" time=\"%.3f\">", cases[i].name, seconds);
		if (is_wrong)
			fprintf(f, "<failure message=\"error %.1e, at most 1e-05 expected\"/>", error);
		fprintf(f, "</testcase>\n");
		n_wrong += is_wrong;
	}
	fprintf(f, "</testsuite></testsuites>\n");
	return n_wrong > 0;
}
