/* What the parts of the reader share: pages as flat lists of events, and growing memory. */
#ifndef SANDERLING_READER_H
#define SANDERLING_READER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 128          /* as in markup.py */
#define MOST_TAGS 200000 /* that are read unless the caller says otherwise */
#define LONGEST_ATTRIBUTES 1048576
#define TEXT (-1)            /* the tag of an event that is a text */

/* Bytes that grow. Once memory is short `failed` stays set, and nothing more is added. */
typedef struct {
    char *p;
    Py_ssize_t n, room;
    bool failed;
} Buffer;

void buffer_add(Buffer *to, const char *p, Py_ssize_t n);
void buffer_char(Buffer *to, char c);
void buffer_text(Buffer *to, const char *text);
void buffer_free(Buffer *buffer);
/* Room for one more of `size` bytes in an array that has `n`; 0 if memory is short. */
int grow(void **array, Py_ssize_t n, Py_ssize_t *room, size_t size);

typedef struct {
    const char *p;
    Py_ssize_t n;
} Slice;

static inline bool
slice_is(Slice slice, const char *text)
{
    size_t n = strlen(text);
    return (size_t)slice.n == n && memcmp(slice.p, text, n) == 0;
}

/* Tags that mean something to us, in the order of their names; others get numbers from TAGS on. */
enum {
    A, ABBR, ADDRESS, ANNOTATION, ANNOTATION_XML, AREA, ARTICLE, ASIDE, AUDIO, B, BASE, BLOCKQUOTE, BODY, BR, BUTTON,
    CANVAS, CAPTION, CENTER, CITE, CODE, COL, COLGROUP, DATALIST, DD, DEL, DETAILS, DIALOG, DIR, DIV, DL, DT, EM, EMBED,
    FIELDSET, FIGCAPTION, FIGURE, FOOTER, FORM, FRAME, FRAMESET, H1, H2, H3, H4, H5, H6, HEAD, HEADER, HGROUP, HR, HTML,
    I, IFRAME, IMG, INPUT, KBD, KEYGEN, LEGEND, LI, LINK, MAIN, MAP, MENU, META, METER, NAV, NOSCRIPT, OBJECT, OL,
    OPTGROUP, OPTION, P, PARAM, PRE, PROGRESS, RP, RT, RUBY, S, SAMP, SECTION, SELECT, SOURCE, SPAN, STRIKE, STRONG,
    SUMMARY, SVG, TABLE, TBODY, TD, TEMPLATE, TEXTAREA, TFOOT, TH, THEAD, TITLE, TR, TRACK, TT, UL, VIDEO, WBR, TAGS,
    LAYOUT = TAGS, /* a table that arranges the page */
    OTHERS
};

enum {
    VOID_TAG = 1, BLOCK = 2, HEADING = 4, FENCE = 8, ARRANGES = 16, CHILDLESS = 32, NEVER = 64, VOTES = 128, HOLDS = 256,
    BOX = 512, HEADS_TABLE = 1024, KEEPS_NAME = 2048, INLINE_CODE = 4096,
    DOUBTED = 8192
};
extern const uint16_t tag_traits[OTHERS];
extern const char *const tag_names[TAGS];

typedef struct {
    int tag;          /* TEXT, or that of what opens or closes */
    bool closes;
    bool space;       /* a text that is only the space between tags */
    bool own;         /* a text that is in `texts` and not in the page */
    Py_ssize_t start; /* of the text, or of the attributes */
    Py_ssize_t length;
    Py_ssize_t end;   /* where what opens here closes */
} Event;

typedef struct {
    Slice html;
    Event *events;
    Py_ssize_t count, room;
    Py_ssize_t *veiled; /* where something opens that may be hidden */
    Py_ssize_t veils, veil_room;
    Buffer texts; /* those that are not in the page as they are read */
    Py_ssize_t most_tags;
    bool cut;     /* it has more tags than that */
    PyObject *plain, *dereference; /* what markup.py does with rare references */
} Page;

/* Read the page; 0 after an exception. */
int parse_page(Page *page);
void page_free(Page *page);

static inline Slice
event_text(const Page *page, const Event *event)
{
    const char *from = event->own ? page->texts.p : page->html.p;
    return (Slice){from + event->start, event->length};
}

static inline Slice
event_attributes(const Page *page, const Event *event)
{
    return (Slice){page->html.p + event->start, event->length};
}

/* The next attribute at *at, or false; `value` is as it is written. */
bool next_attribute(Slice raw, Py_ssize_t *at, Slice *name, Slice *value);
/* The value of the first attribute of that name, its references read, in `into` if it has any. 1, 0 if there is none,
 * -1 after an exception. */
int attribute(const Page *page, Slice raw, const char *name, Buffer *into, Slice *value);
Py_ssize_t characters(Slice text);

static inline bool
is_html_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static inline char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* The character at *at, which is then behind it. UTF-8 from Python is sound. */
static inline Py_UCS4
next_character(Slice text, Py_ssize_t *at)
{
    const unsigned char *p = (const unsigned char *)text.p + *at;
    Py_ssize_t left = text.n - *at;
    if (p[0] < 0x80 || left < 2) {
        *at += 1;
        return p[0];
    }
    if (p[0] < 0xe0 || left < 3) {
        *at += 2;
        return ((Py_UCS4)(p[0] & 0x1f) << 6) | (p[1] & 0x3f);
    }
    if (p[0] < 0xf0 || left < 4) {
        *at += 3;
        return ((Py_UCS4)(p[0] & 0x0f) << 12) | ((Py_UCS4)(p[1] & 0x3f) << 6) | (p[2] & 0x3f);
    }
    *at += 4;
    return ((Py_UCS4)(p[0] & 0x07) << 18) | ((Py_UCS4)(p[1] & 0x3f) << 12) | ((Py_UCS4)(p[2] & 0x3f) << 6) | (p[3] & 0x3f);
}

static inline Py_UCS4
last_character(Slice text)
{
    Py_ssize_t at = text.n - 1;
    while (at > 0 && ((unsigned char)text.p[at] & 0xc0) == 0x80) {
        at--;
    }
    return next_character(text, &at);
}

/* As a function: the macro looks at its argument several times. */
static inline bool
is_space(Py_UCS4 c)
{
    return Py_UNICODE_ISSPACE(c);
}

typedef struct {
    Py_ssize_t start, end; /* of events, the last one included */
} Range;

typedef struct {
    Range *ranges;
    Py_ssize_t count, room;
} Ranges;

/* The parts of the page that people came to read, in order; 0 after an exception. */
int readable(const Page *page, Ranges *found);
/* Those parts as Markdown; NULL after an exception. `absolute` makes a URL of what a link says, or None. */
PyObject *render(const Page *page, const Ranges *parts, PyObject *absolute);

#endif
