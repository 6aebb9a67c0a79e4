#include "addmm_relu.h"

void addmm_relu(int n, int m, int k, float alpha, const float *a, const float *b, float beta, const float *c, float *out)
{
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < m; j++) {
			float sum = 0;

			for (int l = 0; l < k; l++)
				sum += a[i * k + l] * b[l * m + j];
			sum = alpha * sum + beta * c[i * m + j];
			out[i * m + j] = sum > 0 ? sum : 0;
		}
	}
}
