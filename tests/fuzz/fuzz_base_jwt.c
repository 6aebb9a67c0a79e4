/* Any bytes as a token: it is refused, or its parts equal those in the text. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct error e = {0};
	struct jwt t;
	int err = jwt_parse((const char *)data, n, &t, &e);

	if (err) {
		assert(e.code == err && e.text[0]);
		assert(!t.header && !t.payload);
		return 0;
	}
	assert(json_is_object(t.header) && json_is_object(t.payload) && t.alg);
	assert(t.signing_input == (const char *)data && t.n_signing_input < n);
	assert(data[t.n_signing_input] == '.');
	assert(t.n_signature <= sizeof(t.signature));
	jwt_release(&t);
	return 0;
}
