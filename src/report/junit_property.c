#include "report/junit_property.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

enum { VALUE_MAX_BYTES = 512 }; /* of the environment: eight of them stay far below its limit */
static const int64_t CUT_MAX = INT64_C(1) << 40;

const struct junit_environment JUNIT_ENVIRONMENT[] = {
    {"outpost.accelerator", NULL, "accelerator"},
    {"outpost.device", NULL, "device"},
    {"outpost.os", NULL, "os"},
    {"outpost.driver", NULL, "driver"},
    {"outpost.torch", NULL, "torch"},
    {"outpost.torch_commit", NULL, "torch_commit"},
    {"outpost.extension.name", "extension", "name"},
    {"outpost.extension.version", "extension", "version"},
    {NULL, NULL, NULL},
};

/* NULL unless it has both. */
static const char *named(const char *const *attributes, const char **ret_value)
{
	const char *name = NULL, *value = NULL;

	for (; attributes[0]; attributes += 2) {
		if (str_eq(attributes[0], "name"))
			name = attributes[1];
		else if (str_eq(attributes[0], "value"))
			value = attributes[1];
	}
	*ret_value = value;
	return value && *value ? name : NULL;
}

/* The last one counts. NULL when nothing is left of the value. */
static void take_line(char **to, const char *value)
{
	free(*to);
	*to = report_line(value, REPORT_UNIT_MAX_BYTES);
	if (!**to)
		FREE_AND_NULL(*to);
}

static void take_number(struct junit_facts *f, const char *value)
{
	char *end;
	double number = strtod(value, &end);

	f->has_number = *end == '\0' && isfinite(number);
	f->number = f->has_number ? number : 0;
}

void junit_facts_add(struct junit_facts *f, const char *const *attributes)
{
	const char *value, *name = named(attributes, &value);

	if (!name)
		return;
	if (str_eq(name, JUNIT_DTYPE)) {
		take_line(&f->dtype, value);
	} else if (str_eq(name, JUNIT_UNIT)) {
		take_line(&f->unit, value);
	} else if (str_eq(name, JUNIT_NUMBER)) {
		take_number(f, value);
	} else if (str_eq(name, JUNIT_LOG_URL)) {
		free(f->log_url);
		f->log_url = report_link(value);
	} else if (str_eq(name, JUNIT_STATUS)) {
		f->is_done = str_eq(value, test_status_name(TEST_DONE));
		f->is_miss = str_eq(value, test_status_name(TEST_MISS));
	}
}

void junit_facts_strip(const struct junit_facts *f, char *name)
{
	char *tail = f->dtype ? xasprintf(" (%s)", f->dtype) : NULL;

	if (tail && str_has_suffix(name, tail) && strlen(name) > strlen(tail))
		name[strlen(name) - strlen(tail)] = '\0';
	free(tail);
}

void junit_facts_apply(struct junit_facts *f, struct test_result *t)
{
	if (f->is_done && t->status == TEST_PASS)
		t->status = TEST_DONE;
	else if (f->is_miss && t->status == TEST_ERROR)
		t->status = TEST_MISS;
	t->dtype = f->dtype;
	t->log_url = f->log_url;
	t->has_number = f->has_number;
	t->number = f->number;
	f->dtype = f->log_url = NULL;
	if (f->has_number) {
		t->unit = f->unit;
		f->unit = NULL;
	}
	junit_facts_release(f);
}

void junit_facts_release(struct junit_facts *f)
{
	free(f->dtype);
	free(f->unit);
	free(f->log_url);
	*f = (struct junit_facts){0};
}

static void set_once(json_t *obj, const char *key, const char *value)
{
	char *line = report_line(value, VALUE_MAX_BYTES);

	if (*line && !json_object_get(obj, key))
		json_set_str(obj, key, line);
	free(line);
}

void junit_environment_add(json_t **environment, size_t *n_cut, const char *const *attributes)
{
	const char *value, *name = named(attributes, &value);
	int64_t n;

	if (!name)
		return;
	if (str_eq(name, JUNIT_CUT) && !parse_int64(value, &n) && n > 0 &&
	    n <= CUT_MAX - (int64_t)*n_cut)
		*n_cut += (size_t)n;
	for (const struct junit_environment *e = JUNIT_ENVIRONMENT; e->property; e++) {
		json_t *of;

		if (!str_eq(name, e->property))
			continue;
		if (!*environment)
			*environment = json_object();
		if (e->object && !json_object_get(*environment, e->object))
			json_object_set_new(*environment, e->object, json_object());
		of = e->object ? json_object_get(*environment, e->object) : *environment;
		set_once(of, e->key, value);
	}
}
