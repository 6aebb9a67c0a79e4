/* relu(beta * c + alpha * a @ b), in one pass over the result. Row-major; c is n × m, a n × k, b k × m. */
#ifndef ADDMM_RELU_H
#define ADDMM_RELU_H

void addmm_relu(int n, int m, int k, float alpha, const float *a, const float *b, float beta, const float *c, float *out);

#endif
