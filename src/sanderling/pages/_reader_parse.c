/* From HTML to a flat list of what it opens, says and closes: markup.py again, in C. That is the reference, and says why
 * there is no tree; the tests run both against each other. Everything is linear in the page. */
#include "_reader.h"


/* --- growing memory --------------------------------------------------------------------------------------------- */

int
grow(void **array, Py_ssize_t n, Py_ssize_t *room, size_t size)
{
    if (n < *room) {
        return 1;
    }
    Py_ssize_t wanted = *room ? *room * 2 : 64;
    if (wanted > PY_SSIZE_T_MAX / (Py_ssize_t)size) {
        return 0;
    }
    void *larger = PyMem_RawRealloc(*array, (size_t)wanted * size);
    if (larger == NULL) {
        return 0;
    }
    *array = larger;
    *room = wanted;
    return 1;
}

void
buffer_add(Buffer *to, const char *p, Py_ssize_t n)
{
    if (to->failed || n <= 0) {
        return;
    }
    if (n > to->room - to->n) {
        Py_ssize_t wanted = to->room < 128 ? 256 : to->room * 2;
        while (wanted - to->n < n) {
            if (wanted > PY_SSIZE_T_MAX / 2) {
                to->failed = true;
                return;
            }
            wanted *= 2;
        }
        char *larger = PyMem_RawRealloc(to->p, (size_t)wanted);
        if (larger == NULL) {
            to->failed = true;
            return;
        }
        to->p = larger;
        to->room = wanted;
    }
    memcpy(to->p + to->n, p, (size_t)n);
    to->n += n;
}

void
buffer_char(Buffer *to, char c)
{
    buffer_add(to, &c, 1);
}

void
buffer_text(Buffer *to, const char *text)
{
    buffer_add(to, text, (Py_ssize_t)strlen(text));
}

void
buffer_free(Buffer *buffer)
{
    PyMem_RawFree(buffer->p);
    *buffer = (Buffer){0};
}

void
page_free(Page *page)
{
    PyMem_RawFree(page->events);
    PyMem_RawFree(page->veiled);
    buffer_free(&page->texts);
    page->events = NULL;
    page->veiled = NULL;
}

Py_ssize_t
characters(Slice text)
{
    Py_ssize_t n = 0;
    for (Py_ssize_t at = 0; at < text.n; at++) {
        n += ((unsigned char)text.p[at] & 0xc0) != 0x80;
    }
    return n;
}

/* --- tags ------------------------------------------------------------------------------------------------------- */

const char *const tag_names[TAGS] = {
    "a", "abbr", "address", "annotation", "annotation-xml", "area", "article", "aside", "audio", "b", "base",
    "blockquote", "body", "br", "button", "canvas", "caption", "center", "cite", "code", "col", "colgroup", "datalist",
    "dd", "del", "details", "dialog", "dir", "div", "dl", "dt", "em", "embed", "fieldset", "figcaption", "figure",
    "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr", "html",
    "i", "iframe", "img", "input", "kbd", "keygen", "legend", "li", "link", "main", "map", "menu", "meta", "meter",
    "nav", "noscript", "object", "ol", "optgroup", "option", "p", "param", "pre", "progress", "rp", "rt", "ruby", "s",
    "samp", "section", "select", "source", "span", "strike", "strong", "summary", "svg", "table", "tbody", "td",
    "template", "textarea", "tfoot", "th", "thead", "title", "tr", "track", "tt", "ul", "video", "wbr",
};

const uint16_t tag_traits[OTHERS] = {
    [A] = KEEPS_NAME,
    [ADDRESS] = BLOCK,
    [ANNOTATION] = NEVER,
    [ANNOTATION_XML] = NEVER,
    [AREA] = VOID_TAG | CHILDLESS,
    [ARTICLE] = BLOCK | ARRANGES | HOLDS | KEEPS_NAME,
    [ASIDE] = BLOCK,
    [AUDIO] = NEVER,
    [BASE] = VOID_TAG | CHILDLESS,
    [BLOCKQUOTE] = BLOCK | ARRANGES,
    [BODY] = BLOCK | CHILDLESS | HOLDS | KEEPS_NAME,
    [BR] = VOID_TAG | CHILDLESS,
    [BUTTON] = FENCE | DOUBTED,
    [CANVAS] = NEVER,
    [CAPTION] = BLOCK | FENCE | HEADS_TABLE,
    [CENTER] = BLOCK | HOLDS,
    [CODE] = INLINE_CODE,
    [COL] = VOID_TAG | CHILDLESS | HEADS_TABLE,
    [COLGROUP] = HEADS_TABLE,
    [DATALIST] = NEVER,
    [DD] = BLOCK,
    [DETAILS] = BLOCK,
    [DIALOG] = BLOCK | NEVER,
    [DIR] = BLOCK,
    [DIV] = BLOCK | HOLDS | BOX,
    [DL] = BLOCK | BOX,
    [DT] = BLOCK,
    [EMBED] = VOID_TAG | CHILDLESS,
    [FIELDSET] = BLOCK | BOX,
    [FIGCAPTION] = BLOCK,
    [FIGURE] = BLOCK,
    [FOOTER] = BLOCK,
    [FORM] = BLOCK | ARRANGES | BOX,
    [FRAME] = VOID_TAG | CHILDLESS,
    [FRAMESET] = BLOCK,
    [H1] = BLOCK | HEADING | ARRANGES,
    [H2] = BLOCK | HEADING | ARRANGES | VOTES,
    [H3] = BLOCK | HEADING | ARRANGES | VOTES,
    [H4] = BLOCK | HEADING | ARRANGES | VOTES,
    [H5] = BLOCK | HEADING | ARRANGES | VOTES,
    [H6] = BLOCK | HEADING | ARRANGES | VOTES,
    [HEAD] = CHILDLESS,
    [HEADER] = BLOCK,
    [HGROUP] = BLOCK,
    [HR] = BLOCK | VOID_TAG | CHILDLESS | ARRANGES,
    [HTML] = CHILDLESS | KEEPS_NAME,
    [IFRAME] = NEVER,
    [IMG] = VOID_TAG | CHILDLESS,
    [INPUT] = VOID_TAG | CHILDLESS,
    [KBD] = INLINE_CODE,
    [KEYGEN] = VOID_TAG | CHILDLESS,
    [LEGEND] = BLOCK,
    [LI] = BLOCK | HOLDS,
    [LINK] = VOID_TAG | CHILDLESS,
    [MAIN] = BLOCK | HOLDS | KEEPS_NAME,
    [MAP] = NEVER,
    [MENU] = BLOCK,
    [META] = VOID_TAG | CHILDLESS,
    [METER] = NEVER,
    [NAV] = BLOCK,
    [NOSCRIPT] = DOUBTED,
    [OBJECT] = FENCE | NEVER,
    [OL] = BLOCK | BOX,
    [P] = BLOCK | VOTES,
    [PARAM] = VOID_TAG | CHILDLESS,
    [PRE] = BLOCK | ARRANGES | VOTES,
    [PROGRESS] = NEVER,
    [RP] = NEVER,
    [RT] = NEVER,
    [SAMP] = INLINE_CODE,
    [SECTION] = BLOCK | ARRANGES | VOTES | HOLDS | BOX,
    [SELECT] = NEVER,
    [SOURCE] = VOID_TAG | CHILDLESS,
    [SUMMARY] = BLOCK,
    [SVG] = NEVER,
    [TABLE] = BLOCK | FENCE | ARRANGES | BOX,
    [TBODY] = BLOCK,
    [TD] = BLOCK | FENCE | VOTES,
    [TEMPLATE] = FENCE | NEVER,
    [TEXTAREA] = NEVER,
    [TFOOT] = BLOCK | HEADS_TABLE,
    [TH] = BLOCK | FENCE | HEADS_TABLE,
    [THEAD] = BLOCK | HEADS_TABLE,
    [TITLE] = NEVER,
    [TR] = BLOCK,
    [TRACK] = VOID_TAG | CHILDLESS,
    [TT] = INLINE_CODE,
    [UL] = BLOCK | BOX,
    [VIDEO] = NEVER,
    [WBR] = VOID_TAG | CHILDLESS,
    [LAYOUT] = BLOCK | HOLDS | BOX,
};

static inline uint16_t
traits_of(int tag)
{
    return tag < OTHERS ? tag_traits[tag] : 0;
}

/* Which of what is open an opening tag closes, unless a wall hides it. */
static bool
opening_closes(int tag, int open)
{
    switch (tag) {
    case LI: return open == P || open == LI;
    case DT: case DD: return open == P || open == DT || open == DD;
    case OPTION: return open == OPTION;
    case OPTGROUP: return open == OPTION || open == OPTGROUP;
    case TD: case TH: return open == TD || open == TH;
    case TR: return open == TD || open == TH || open == TR;
    case THEAD: case TBODY: case TFOOT:
        return open == TD || open == TH || open == TR || open == THEAD || open == TBODY || open == TFOOT ||
               open == CAPTION;
    case A: return open == A;
    case RT: case RP: return open == RT || open == RP;
    default: return traits_of(tag) & BLOCK && (open == P || open == TITLE);
    }
}

static bool
hides_from_opening(int tag, int open)
{
    bool fence = traits_of(open) & FENCE;
    switch (tag) {
    case LI: return fence || open == UL || open == OL || open == MENU || open == DIR;
    case DT: case DD: return fence || open == DL;
    case OPTION: return open == SELECT || open == DATALIST;
    case OPTGROUP: return open == SELECT;
    case TD: case TH: case TR: case THEAD: case TBODY: case TFOOT: return open == TABLE;
    case RT: case RP: return open == RUBY;
    default: return fence;
    }
}

/* What a closing tag does not reach past: cells stay in their table, blocks in their cell, and all else in its block. */
static bool
hides_from_closing(int tag, int open)
{
    switch (tag) {
    case TABLE: return false;
    case TD: case TH: case TR: case THEAD: case TBODY: case TFOOT: case CAPTION: case OBJECT: case BUTTON:
    case TEMPLATE: return open == TABLE;
    case P: return traits_of(open) & FENCE;
    default: return traits_of(tag) & BLOCK ? traits_of(open) & FENCE && open != BUTTON : traits_of(open) & BLOCK;
    }
}

/* Names that are none of ours, each with a number; they matter only to who closes them. */
typedef struct {
    Slice name;
    int tag;
} Name;

typedef struct {
    Page *page;
    int tags[DEEPEST];         /* what is open, outermost first, */
    Py_ssize_t since[DEEPEST]; /* and where it opened */
    int depth, pres, tables;
    int open_ours[TAGS]; /* how many of each are open */
    Name *names; /* a table by hash, with room for twice as many */
    Py_ssize_t named, name_room;
} Parser;

static bool
same_name(Slice one, Slice other)
{
    if (one.n != other.n) {
        return false;
    }
    for (Py_ssize_t at = 0; at < one.n; at++) {
        if (lower(one.p[at]) != lower(other.p[at])) {
            return false;
        }
    }
    return true;
}

static size_t
hash_name(Slice name)
{
    uint64_t hash = 1469598103934665603u;
    for (Py_ssize_t at = 0; at < name.n; at++) {
        hash = (hash ^ (unsigned char)lower(name.p[at])) * 1099511628211u;
    }
    return (size_t)(hash ^ (hash >> 29));
}

static Name *
name_place(Name *names, Py_ssize_t room, Slice name)
{
    size_t at = hash_name(name) % (size_t)room;
    while (names[at].tag && !same_name(names[at].name, name)) {
        at = (at + 1) % (size_t)room;
    }
    return &names[at];
}

static int
more_names(Parser *parser)
{
    Py_ssize_t room = parser->name_room ? parser->name_room * 2 : 64;
    Name *names = PyMem_RawCalloc((size_t)room, sizeof(Name));
    if (names == NULL) {
        return 0;
    }
    for (Py_ssize_t at = 0; at < parser->name_room; at++) {
        if (parser->names[at].tag) {
            *name_place(names, room, parser->names[at].name) = parser->names[at];
        }
    }
    PyMem_RawFree(parser->names);
    parser->names = names;
    parser->name_room = room;
    return 1;
}

/* The number of a tag; -1 if memory is short. */
static int
tag_of(Parser *parser, Slice name)
{
    if (name.n <= 14) {
        int first = 0, behind = TAGS;
        while (first < behind) {
            int middle = (first + behind) / 2;
            const char *known = tag_names[middle];
            int order = 0;
            Py_ssize_t at = 0;
            while (order == 0 && at < name.n && known[at]) {
                order = (unsigned char)lower(name.p[at]) - (unsigned char)known[at];
                at++;
            }
            if (order == 0 && at == name.n && known[at] == 0) {
                return middle;
            }
            if (order < 0 || (order == 0 && at == name.n)) {
                behind = middle;
            } else {
                first = middle + 1;
            }
        }
    }
    if (parser->named * 2 >= parser->name_room && !more_names(parser)) {
        return -1;
    }
    Name *place = name_place(parser->names, parser->name_room, name);
    if (!place->tag) {
        place->name = name;
        place->tag = OTHERS + (int)++parser->named;
    }
    return place->tag;
}

/* --- nesting ---------------------------------------------------------------------------------------------------- */

static Event *
add_event(Page *page, Event event)
{
    if (!grow((void **)&page->events, page->count, &page->room, sizeof(Event))) {
        return NULL;
    }
    page->events[page->count] = event;
    return &page->events[page->count++];
}

static int
close_last(Parser *parser)
{
    parser->depth--;
    int tag = parser->tags[parser->depth];
    Py_ssize_t at = parser->page->count;
    parser->page->events[parser->since[parser->depth]].end = at;
    if (tag < TAGS) {
        parser->open_ours[tag]--;
    }
    return add_event(parser->page, (Event){.tag = tag, .closes = true, .end = at}) != NULL;
}

static int
close_from(Parser *parser, int level)
{
    while (parser->depth > level) {
        if (!close_last(parser)) {
            return 0;
        }
    }
    return 1;
}

static int
close_for_opening(Parser *parser, int tag)
{
    int lowest = parser->depth;
    for (int level = parser->depth - 1; level >= 0; level--) {
        int open = parser->tags[level];
        if (opening_closes(tag, open)) {
            lowest = level;
        }
        if (hides_from_opening(tag, open)) {
            break;
        }
    }
    return close_from(parser, lowest);
}

static bool
contains(Slice text, const char *part)
{
    Py_ssize_t n = (Py_ssize_t)strlen(part);
    const char *p = text.p, *last = text.p + text.n - n;
    while (p <= last && (p = memchr(p, part[0], (size_t)(last - p + 1))) != NULL) {
        if (memcmp(p, part, (size_t)n) == 0) {
            return true;
        }
        p++;
    }
    return false;
}

static bool
has_rule(int tag)
{
    return traits_of(tag) & BLOCK || tag == A || tag == OPTION || tag == OPTGROUP || tag == RT || tag == RP;
}

static int
open_tag(Parser *parser, int tag, Slice raw)
{
    Page *page = parser->page;
    uint16_t traits = traits_of(tag);
    if (has_rule(tag) && !close_for_opening(parser, tag)) {
        return 0;
    }
    if (traits & ARRANGES && parser->open_ours[TABLE]) {
        int level = parser->depth - 1;
        while (parser->tags[level] != TABLE) {
            level--;
        }
        page->events[parser->since[level]].tag = LAYOUT;
    }
    Py_ssize_t at = page->count;
    if (!add_event(page, (Event){.tag = tag, .start = raw.p - page->html.p, .length = raw.n, .end = at})) {
        return 0;
    }
    if (raw.n && (contains(raw, "hidden") || contains(raw, "display"))) {
        if (!grow((void **)&page->veiled, page->veils, &page->veil_room, sizeof(Py_ssize_t))) {
            return 0;
        }
        page->veiled[page->veils++] = at;
    }
    if (traits & CHILDLESS) {
        return 1;
    }
    if (parser->depth < DEEPEST) {
        parser->tags[parser->depth] = tag;
        parser->since[parser->depth++] = at;
        if (tag < TAGS) {
            parser->open_ours[tag]++;
        }
        return 1;
    }
    page->events[at].end = at + 1;
    return add_event(page, (Event){.tag = tag, .closes = true, .end = at + 1}) != NULL;
}

static int
close_tag(Parser *parser, int tag)
{
    if (parser->depth && parser->tags[parser->depth - 1] == tag) {
        return close_last(parser);
    }
    for (int level = parser->depth - 1; level >= 0; level--) {
        int open = parser->tags[level];
        if (open == tag) {
            return close_from(parser, level);
        }
        if (hides_from_closing(tag, open)) {
            break;
        }
    }
    return 1;
}

/* --- texts ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name, *means;
} REFERENCES[] = {
    {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"nbsp", "\xc2\xa0"}, {"#39", "'"}, {"#039", "'"},
    {"#x27", "'"}, {"apos", "'"}, {"#34", "\""}, {"#160", "\xc2\xa0"}, {"#xA0", "\xc2\xa0"}, {"#8217", "\xe2\x80\x99"},
    {"#8216", "\xe2\x80\x98"}, {"#8220", "\xe2\x80\x9c"}, {"#8221", "\xe2\x80\x9d"}, {"#8211", "\xe2\x80\x93"},
    {"#8212", "\xe2\x80\x94"}, {"#8230", "\xe2\x80\xa6"}, {"#x2019", "\xe2\x80\x99"}, {"#x2F", "/"},
    {"rsquo", "\xe2\x80\x99"}, {"lsquo", "\xe2\x80\x98"}, {"ldquo", "\xe2\x80\x9c"}, {"rdquo", "\xe2\x80\x9d"},
    {"ndash", "\xe2\x80\x93"}, {"mdash", "\xe2\x80\x94"}, {"hellip", "\xe2\x80\xa6"}, {"copy", "\xc2\xa9"},
    {"reg", "\xc2\xae"}, {"laquo", "\xc2\xab"}, {"raquo", "\xc2\xbb"}, {"bull", "\xe2\x80\xa2"}, {"middot", "\xc2\xb7"},
    {"times", "\xc3\x97"}, {"deg", "\xc2\xb0"}, {"eacute", "\xc3\xa9"}, {"egrave", "\xc3\xa8"}, {"agrave", "\xc3\xa0"},
    {"uuml", "\xc3\xbc"}, {"ouml", "\xc3\xb6"}, {"auml", "\xc3\xa4"}, {"szlig", "\xc3\x9f"}, {"euro", "\xe2\x82\xac"},
};

static bool
is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Add the text with its references read, if they are all of the usual ones, written in full. */
static bool
add_usual(Buffer *to, Slice text, bool in_attribute)
{
    Py_ssize_t at = 0;
    while (at < text.n) {
        const char *and = memchr(text.p + at, '&', (size_t)(text.n - at));
        if (and == NULL) {
            break;
        }
        Py_ssize_t start = and - text.p, end = start + 1;
        buffer_add(to, text.p + at, start - at);
        at = end;
        if (end < text.n && text.p[end] == '#') {
            end++;
        }
        while (end < text.n && is_alnum(text.p[end]) && end - start < 40) {
            end++;
        }
        if (end == start + 1) { /* no reference */
            buffer_char(to, '&');
            continue;
        }
        bool whole = end < text.n && text.p[end] == ';';
        if (!whole && in_attribute && text.p[start + 1] != '#' && end < text.n && text.p[end] == '=' && end - start < 34) {
            buffer_char(to, '&'); /* a parameter of a query */
            continue;
        }
        const char *means = NULL;
        for (size_t each = 0; whole && each < sizeof REFERENCES / sizeof *REFERENCES && means == NULL; each++) {
            if (slice_is((Slice){text.p + start + 1, end - start - 1}, REFERENCES[each].name)) {
                means = REFERENCES[each].means;
            }
        }
        if (means == NULL) {
            return false;
        }
        buffer_text(to, means);
        at = end + 1;
    }
    buffer_add(to, text.p + at, text.n - at);
    return true;
}

/* Add what `function` makes of the text; 0 after an exception. */
static int
add_by_python(Buffer *to, Slice text, PyObject *function)
{
    if (PyErr_Occurred()) { /* memory was short just before */
        return 0;
    }
    PyObject *given = PyUnicode_DecodeUTF8(text.p, text.n, "strict");
    PyObject *made = given == NULL ? NULL : PyObject_CallOneArg(function, given);
    Py_XDECREF(given);
    if (made == NULL) {
        return 0;
    }
    PyObject *bytes = PyUnicode_AsEncodedString(made, "utf-8", "replace"); /* of a surrogate there is no text */
    Py_DECREF(made);
    if (bytes == NULL) {
        return 0;
    }
    buffer_add(to, PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return 1;
}

static bool
is_blank(Slice text)
{
    Py_ssize_t at = 0;
    while (at < text.n) {
        if (!is_space(next_character(text, &at))) {
            return false;
        }
    }
    return true;
}

static int
add_text(Parser *parser, Slice text)
{
    Page *page = parser->page;
    Event event = {.tag = TEXT, .start = text.p - page->html.p, .length = text.n, .end = page->count};
    if (text.n == 0) {
        return 1;
    }
    bool blank = is_blank(text);
    if (blank && (!parser->open_ours[PRE] || slice_is(text, " "))) {
        event.space = true;
    } else if (!blank && memchr(text.p, '&', (size_t)text.n) != NULL) {
        event.own = true;
        event.start = page->texts.n;
        if (!add_usual(&page->texts, text, false)) {
            page->texts.n = event.start;
            if (!add_by_python(&page->texts, text, page->plain)) {
                return 0;
            }
        }
        event.length = page->texts.n - event.start;
        if (page->texts.failed) {
            PyErr_NoMemory();
            return 0;
        }
    }
    return add_event(page, event) != NULL;
}

/* --- attributes ------------------------------------------------------------------------------------------------- */

/* Behind the attributes that begin at `at`: the pattern of markup.py, which never goes back. */
static Py_ssize_t
behind_attributes(Slice html, Py_ssize_t at)
{
    const char *p = html.p;
    Py_ssize_t n = html.n;
    while (at < n && p[at] != '>') {
        if (is_html_space(p[at]) || p[at] == '/') {
            at++;
            continue;
        }
        at++;
        while (at < n && !is_html_space(p[at]) && p[at] != '/' && p[at] != '>' && p[at] != '=') {
            at++;
        }
        Py_ssize_t value = at;
        while (value < n && is_html_space(p[value])) {
            value++;
        }
        if (value >= n || p[value] != '=') {
            continue;
        }
        value++;
        while (value < n && is_html_space(p[value])) {
            value++;
        }
        if (value >= n) {
            continue;
        }
        if (p[value] == '"' || p[value] == '\'') {
            const char *end = memchr(p + value + 1, p[value], (size_t)(n - value - 1));
            at = end == NULL ? n : end - p + 1;
        } else {
            while (value < n && !is_html_space(p[value]) && p[value] != '>') {
                value++;
            }
            at = value;
        }
    }
    return at;
}

bool
next_attribute(Slice raw, Py_ssize_t *from, Slice *name, Slice *value)
{
    Py_ssize_t at = *from, n = raw.n;
    const char *p = raw.p;
    while (at < n && (is_html_space(p[at]) || p[at] == '/' || p[at] == '>')) {
        at++;
    }
    if (at >= n) {
        return false;
    }
    Py_ssize_t start = at++;
    while (at < n && !is_html_space(p[at]) && p[at] != '/' && p[at] != '>' && p[at] != '=') {
        at++;
    }
    *name = (Slice){p + start, at - start};
    *value = (Slice){p + at, 0};
    Py_ssize_t next = at;
    while (next < n && is_html_space(p[next])) {
        next++;
    }
    if (next < n && p[next] == '=') {
        next++;
        while (next < n && is_html_space(p[next])) {
            next++;
        }
        start = next;
        if (next < n && (p[next] == '"' || p[next] == '\'')) {
            const char *end = memchr(p + next + 1, p[next], (size_t)(n - next - 1));
            Py_ssize_t behind = end == NULL ? n : end - p;
            *value = (Slice){p + next + 1, behind - next - 1};
            at = end == NULL ? n : behind + 1;
        } else {
            while (next < n && !is_html_space(p[next]) && p[next] != '>') {
                next++;
            }
            *value = (Slice){p + start, next - start};
            at = next;
        }
    }
    *from = at;
    return true;
}

/* No more of the attributes than markup.py reads. */
static Slice
bounded(Slice raw)
{
    if (raw.n > LONGEST_ATTRIBUTES) {
        Py_ssize_t at = 0;
        for (int count = 0; count < LONGEST_ATTRIBUTES && at < raw.n; count++) {
            next_character(raw, &at);
        }
        raw.n = at;
    }
    return raw;
}

int
attribute(const Page *page, Slice raw, const char *wanted, Buffer *into, Slice *found)
{
    Slice name, value, given = {wanted, (Py_ssize_t)strlen(wanted)};
    Py_ssize_t at = 0;
    raw = bounded(raw);
    while (next_attribute(raw, &at, &name, &value)) {
        if (!same_name(name, given)) {
            continue;
        }
        if (value.n && memchr(value.p, '&', (size_t)value.n) != NULL) {
            into->n = 0;
            if (!add_usual(into, value, true)) {
                into->n = 0;
                if (!add_by_python(into, value, page->dereference)) {
                    return -1;
                }
            }
            if (into->failed) {
                PyErr_NoMemory();
                return -1;
            }
            value = (Slice){into->n ? into->p : "", into->n};
        }
        *found = value;
        return 1;
    }
    return 0;
}

/* --- tokens ----------------------------------------------------------------------------------------------------- */

static const char *const RAW_TAGS[] = {"script", "style", "textarea", "xmp", "noembed", "noframes"};

static bool
ends_name(Slice html, Py_ssize_t at)
{
    return at < html.n && (is_html_space(html.p[at]) || html.p[at] == '/' || html.p[at] == '>');
}

static bool
begins_with(Slice html, Py_ssize_t at, const char *name, Py_ssize_t n)
{
    return html.n - at >= n && same_name((Slice){html.p + at, n}, (Slice){name, n});
}

/* Behind an element at `at` (behind the `<`) whose inside is no markup; -1 if there is none. */
static Py_ssize_t
behind_raw(Slice html, Py_ssize_t at)
{
    for (size_t each = 0; each < sizeof RAW_TAGS / sizeof *RAW_TAGS; each++) {
        Py_ssize_t n = (Py_ssize_t)strlen(RAW_TAGS[each]);
        if (!begins_with(html, at, RAW_TAGS[each], n) || !ends_name(html, at + n)) {
            continue;
        }
        Py_ssize_t inside = behind_attributes(html, at + n);
        if (inside >= html.n) {
            return -1;
        }
        inside++;
        while (inside < html.n) {
            const char *next = memchr(html.p + inside, '<', (size_t)(html.n - inside));
            if (next == NULL) {
                return html.n;
            }
            inside = next - html.p;
            if (inside + 1 < html.n && html.p[inside + 1] == '/' && begins_with(html, inside + 2, RAW_TAGS[each], n) &&
                ends_name(html, inside + 2 + n)) {
                const char *end = memchr(html.p + inside, '>', (size_t)(html.n - inside));
                return end == NULL ? html.n : end - html.p + 1;
            }
            inside++;
        }
        return html.n;
    }
    return -1;
}

/* Behind a comment; `at` is behind its `<!--`. */
static Py_ssize_t
behind_comment(Slice html, Py_ssize_t at)
{
    const char *p = html.p;
    if (at < html.n && p[at] == '>') {
        return at + 1;
    }
    if (at + 1 < html.n && p[at] == '-' && p[at + 1] == '>') {
        return at + 2;
    }
    while (at < html.n) {
        const char *dash = memchr(p + at, '-', (size_t)(html.n - at));
        if (dash == NULL) {
            return html.n;
        }
        at = dash - p;
        if (at + 2 < html.n && p[at + 1] == '-' && p[at + 2] == '>') {
            return at + 3;
        }
        if (at + 3 < html.n && p[at + 1] == '-' && p[at + 2] == '!' && p[at + 3] == '>') {
            return at + 4;
        }
        at++;
    }
    return html.n;
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static Slice
name_at(Slice html, Py_ssize_t at)
{
    Py_ssize_t end = at;
    while (end < html.n && !is_html_space(html.p[end]) && html.p[end] != '/' && html.p[end] != '>') {
        end++;
    }
    return (Slice){html.p + at, end - at};
}

static Py_ssize_t
behind_bracket(Slice html, Py_ssize_t at)
{
    const char *end = at < html.n ? memchr(html.p + at, '>', (size_t)(html.n - at)) : NULL;
    return end == NULL ? html.n : end - html.p + 1;
}

/* What the `<` at `at` begins: where it ends, and the tag that opens or closes. 0 if it is a text. */
static Py_ssize_t
read_tag(Slice html, Py_ssize_t at, Slice *opens, Slice *raw, Slice *closes)
{
    if (at + 1 >= html.n) {
        return 0;
    }
    char next = html.p[at + 1];
    if (is_letter(next)) {
        Py_ssize_t behind = behind_raw(html, at + 1);
        if (behind >= 0) {
            return behind;
        }
        *opens = name_at(html, at + 1);
        Py_ssize_t from = at + 1 + opens->n, end = behind_attributes(html, from);
        *raw = (Slice){html.p + from, end - from};
        return end < html.n ? end + 1 : end;
    }
    if (next == '/' && at + 2 < html.n && is_letter(html.p[at + 2])) {
        *closes = name_at(html, at + 2);
        return behind_bracket(html, at + 2 + closes->n);
    }
    if (next == '!' && at + 3 < html.n && html.p[at + 2] == '-' && html.p[at + 3] == '-') {
        return behind_comment(html, at + 4);
    }
    return next == '!' || next == '?' || next == '/' ? behind_bracket(html, at + 2) : 0;
}

static int
parse_all(Parser *parser)
{
    Page *page = parser->page;
    Slice html = page->html;
    Py_ssize_t text = 0, at = 0;
    Py_ssize_t tags = 0;
    while (at < html.n) {
        const char *bracket = memchr(html.p + at, '<', (size_t)(html.n - at));
        if (bracket == NULL) {
            break;
        }
        at = bracket - html.p;
        Slice opens = {0}, raw = {0}, closes = {0};
        Py_ssize_t behind = read_tag(html, at, &opens, &raw, &closes);
        if (!behind) {
            at++;
            continue;
        }
        if (!add_text(parser, (Slice){html.p + text, at - text})) {
            return 0;
        }
        int tag = opens.n ? tag_of(parser, opens) : closes.n ? tag_of(parser, closes) : 0;
        if (tag < 0 || (opens.n && !open_tag(parser, tag, raw)) || (closes.n && !close_tag(parser, tag))) {
            return 0;
        }
        text = at = behind;
        if (++tags == page->most_tags) {
            page->cut = at < html.n;
            return close_from(parser, 0);
        }
    }
    return add_text(parser, (Slice){html.p + text, html.n - text}) && close_from(parser, 0);
}

int
parse_page(Page *page)
{
    Parser parser = {.page = page};
    int done = parse_all(&parser);
    PyMem_RawFree(parser.names);
    if (!done && !PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    return done;
}
