/* /badge/{accelerator}.svg. An accelerator that is not registered and one that shows nothing (L1) get the
 * same answer: 404, with an image that says so, because READMEs show images. */
#include "web/badge.h"

#include "store/registry.h"
#include "web/web_internal.h"

enum {
	TITLE_MAX_CHARS = 40,
	PADDING = 50,    /* lengths are in tenths of a pixel: the text is drawn ten times as large */
	GREEN_FROM = 90, /* per cent of green runs */
	AMBER_FROM = 50,
	WIDE = 110, /* a character outside of the table: as wide as it is high */
};

/* White text on each has a contrast of 4.9 or more (WCAG AA), and the state is also there in words. */
#define LABEL_COLOR   "#555"
#define GREEN_COLOR   "#1a7f37"
#define RED_COLOR     "#cf222e"
#define AMBER_COLOR   "#8a5a00"
#define UNKNOWN_COLOR "#57606a"

/* Advance widths of Verdana, in thousandths of its size, from the space on. */
static const unsigned short WIDTHS[] = {352, 394, 459, 818, 636, 1076, 727, 269, 454, 454, 636, 818, 364, 454, 364, 454,
    636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 454, 454, 818, 818, 818, 545, 1000, 684, 686, 698, 771, 632, 575,
    775, 751, 421, 455, 693, 557, 843, 748, 787, 603, 787, 695, 684, 616, 732, 684, 989, 685, 615, 685, 454, 454, 454,
    818, 636, 636, 601, 623, 521, 623, 596, 352, 623, 633, 274, 344, 592, 274, 973, 633, 607, 623, 623, 427, 521, 394,
    633, 592, 818, 592, 592, 525, 635, 454, 635, 818};

/* The width of the text at 11 px with its padding, in whole pixels, so that the line in the middle is sharp. */
static int box_of(const char *s)
{
	int thousandths = 0, wide = 0;

	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c >= ' ' && c < 0x7f)
			thousandths += WIDTHS[c - ' '];
		else if ((c & 0xc0) != 0x80) /* one for each character, not for each byte */
			wide++;
	}
	return (thousandths * 11 / 100 + wide * WIDE + 2 * PADDING + 9) / 10;
}

static void put_words(struct buf *out, const char *s, int x_px, int box_px)
{
	static const struct {
		int y;
		const char *look;
	} layers[] = {{150, " aria-hidden=\"true\" fill=\"#010101\" fill-opacity=\".3\""}, {140, ""}};

	for (int i = 0; i < 2; i++) {
		buf_appendf(out, "<text%s x=\"%d\" y=\"%d\" transform=\"scale(.1)\" textLength=\"%d\">", layers[i].look,
		    x_px * 10 + box_px * 5, layers[i].y, box_px * 10 - 2 * PADDING);
		escape_xml_text(out, s);
		buf_append_str(out, "</text>");
	}
}

static void put_svg(struct buf *out, const char *label, const char *message, const char *color)
{
	struct buf said = BUF_INIT(4096);
	int left = box_of(label), right = box_of(message);

	buf_appendf(&said, "%s: %s", label, message);
	buf_appendf(
	    out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"20\" role=\"img\"", left + right);
	escape_xml_attribute(out, "aria-label", buf_str(&said));
	buf_append_str(out, "><title>");
	escape_xml_text(out, buf_str(&said));
	buf_appendf(out,
	    "</title><linearGradient id=\"s\" x2=\"0\" y2=\"100%%\"><stop offset=\"0\" stop-color=\"#bbb\" "
	    "stop-opacity=\".1\"/><stop offset=\"1\" stop-opacity=\".1\"/></linearGradient><clipPath id=\"r\"><rect "
	    "width=\"%d\" height=\"20\" rx=\"3\" fill=\"#fff\"/></clipPath><g clip-path=\"url(#r)\"><rect width=\"%d\" "
	    "height=\"20\" fill=\"" LABEL_COLOR
	    "\"/><rect x=\"%d\" width=\"%d\" height=\"20\" fill=\"%s\"/><rect width=\"%d\" height=\"20\" "
	    "fill=\"url(#s)\"/></g><g fill=\"#fff\" text-anchor=\"middle\" font-family=\"Verdana,Geneva,DejaVu "
	    "Sans,sans-serif\" text-rendering=\"geometricPrecision\" font-size=\"110\">",
	    left + right, left, left, right, color, left + right);
	put_words(out, label, 0, left);
	put_words(out, message, left, right);
	buf_append_str(out, "</g></svg>\n");
	buf_release(&said);
}

/* Writes the message and returns its colour. */
static const char *describe_badge(const struct badge *b, char *message, size_t n)
{
	static const struct {
		const char *text, *color;
		bool has_age;
	} looks[N_ACCELERATOR_STATUSES] = {
	    [ACCELERATOR_OVERDUE] = {"failing since ", RED_COLOR, true},
	    [ACCELERATOR_RED] = {"failing since ", RED_COLOR, true},
	    [ACCELERATOR_NOT_COUNTED] = {"unhealthy", AMBER_COLOR, false},
	    [ACCELERATOR_SILENT] = {"silent", AMBER_COLOR, false},
	    [ACCELERATOR_NO_REPORT] = {"no report for ", AMBER_COLOR, true},
	    [ACCELERATOR_STALE] = {"not tested for ", AMBER_COLOR, true},
	};
	const struct accelerator_state *s = &b->state;
	int64_t percent = b->n_runs ? b->n_green * 100 / b->n_runs : 0; /* rounded down: 100 % means all */
	int64_t minutes = b->now_ms - s->since_ms > 60000 ? (b->now_ms - s->since_ms) / 60000 : 1;
	char age[32] = ""; /* "2 d"; at least one minute */

	if (s->since_ms && minutes < 60)
		snprintf(age, sizeof(age), "%lld min", (long long)minutes);
	else if (s->since_ms && minutes < 48 * 60)
		snprintf(age, sizeof(age), "%lld h", (long long)(minutes / 60));
	else if (s->since_ms)
		snprintf(age, sizeof(age), "%lld d", (long long)(minutes / 1440));
	if (looks[s->status].text) {
		snprintf(message, n, "%s%s", looks[s->status].text, looks[s->status].has_age ? age : "");
		return looks[s->status].color;
	}
	if (s->status == ACCELERATOR_EXPLAINED || s->status == ACCELERATOR_GREEN) {
		snprintf(message, n, "passing %lld %%", (long long)percent);
		return percent >= GREEN_FROM ? GREEN_COLOR : percent >= AMBER_FROM ? AMBER_COLOR : RED_COLOR;
	}
	snprintf(message, n, "unknown");
	return UNKNOWN_COLOR;
}

void badge_write(struct buf *out, const struct badge *b)
{
	struct buf title = BUF_INIT(4096);
	char message[64];
	const char *color = describe_badge(b, message, sizeof(message));

	escape_line(&title, b->title, TITLE_MAX_CHARS);
	put_svg(out, buf_str(&title), message, color);
	buf_release(&title);
}

void badge_write_unknown(struct buf *out) { put_svg(out, "accelerator", "unknown", UNKNOWN_COLOR); }

/* ---- the request ---- */

enum { BADGE_MAX_BYTES = 16 << 10 };

struct badge_request {
	struct web_read read;
	struct get_figures get;
	char *name;
};

static void release_badge(void *owner)
{
	struct badge_request *b = owner;

	get_figures_release(&b->get);
	free(b->name);
}

static void send_badge(struct http_request *r, const struct badge *b)
{
	struct buf out = BUF_INIT(BADGE_MAX_BYTES);

	if (b)
		badge_write(&out, b);
	else
		badge_write_unknown(&out);
	size_t n = out.len;
	web_document_send(r, &(struct web_document){
				 .status = b ? 200 : 404,
				 .type = "image/svg+xml; charset=utf-8",
				 .cache = "public, max-age=300",
				 .n = n,
				 .body = buf_detach(&out),
			     });
}

static void answer_badge(void *owner)
{
	struct badge_request *b = owner;
	struct badge badge = {.title = b->read.accelerator->title, .now_ms = b->get.now_ms};

	if (b->get.n) {
		const struct accelerator_figures *f = &b->get.list[0];

		badge.state = f->at.state;
		badge.n_runs = f->at.facts.n_runs;
		badge.n_green = f->at.facts.n_green;
	}
	send_badge(b->read.request, &badge);
	web_read_free(b);
}

static const struct web_read_kind BADGE = {sizeof(struct badge_request), release_badge, .answer = answer_badge};

void web_on_badge(struct http_request *r, void *owner)
{
	struct badge_request *b = web_read_new(owner, r, &BADGE);

	if (!b)
		return;
	b->name = xstrdup(http_segment(r, 0));
	if (str_has_suffix(b->name, ".svg")) {
		b->name[strlen(b->name) - strlen(".svg")] = '\0';
		b->read.accelerator = config_accelerator(b->read.config, b->name);
	}
	if (!b->read.accelerator || b->read.accelerator->level == LEVEL_1) {
		send_badge(r, NULL);
		web_read_free(b);
		return;
	}
	b->get.now_ms = clock_wall_ms();
	b->get.only = b->name;
	web_read_await(b, store_get_figures(b->read.store, &b->get));
}
