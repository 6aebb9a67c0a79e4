/* What a vendor's own tool says of the cause of a job's failure: CRCR's `workflow.triage_verdict`
 * (pytorch/test-infra#8673). It is the vendor's claim: shown as such, never evidence. Pure. */
#ifndef MODEL_TRIAGE_VERDICT_H
#define MODEL_TRIAGE_VERDICT_H

#include <jansson.h>

/* The block in a normal form as JSON text, free(). NULL: there is none, or it breaks CRCR's rules: as there,
 * any wrong type, unknown word or unknown schema_version drops the whole block, what is too long is cut, and
 * unknown keys are left out. Texts hold no control characters but line ends. */
char *triage_verdict_parse(const json_t *value);

#endif
