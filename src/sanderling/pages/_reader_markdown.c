/* What a page becomes in Markdown: markdown.py and prose.py again, in C. They are the reference, and explain the terms.
 *
 * A line is made of pieces, of which only the last ones ever change: they lie one behind the other in `line`. */
#include "_reader.h"


#define DEEPEST_BOX 16
#define WIDEST 50
#define LONGEST_JOINED 1000
#define BREAK '\0'
#define LONGEST_MARKER 16

typedef enum { NO_MARK, LINKED, STRONGLY, EMPHASIS, DELETED } Mark;
static const char *const MARKS[] = {"", "[", "**", "*", "~~"};

/* An emphasis that is the last piece of a line, if that is still as long. Its text without marks is in `bare`. */
typedef struct {
    Py_ssize_t length; /* in pieces; -1 for none */
    Mark mark;
    Buffer bare;
} Closed;

typedef struct {
    Mark mark;
    Py_ssize_t start; /* in pieces */
    Buffer target;
    bool adjoins; /* an emphasis right before it */
} Frame;

typedef struct {
    char first[LONGEST_MARKER], rest[LONGEST_MARKER];
    bool tight;
} Box;

typedef struct {
    bool numbered, begun;
    long number;
} List;

/* An open table. The cells of one that shows data are behind each other in `cells`, each after a mark of its row. */
typedef struct {
    bool shows_data;
    int span;
    Buffer caption, texts;
    Py_ssize_t *cells; /* where each ends in `texts`; -1 begins a row */
    Py_ssize_t count, room;
    bool has_rows;
} Table;

typedef enum { IN_TEXT, IN_CODE, IN_PRE } Mode;

typedef struct {
    const Page *page;
    PyObject *absolute;
    Buffer out, line, scratch, work, url;
    Py_ssize_t *pieces; /* where each begins in `line` */
    Py_ssize_t count, room;
    int level;
    Frame frames[2]; /* at most a link and an emphasis, in either order */
    int framed, depths[2];
    Box boxes[DEEPEST_BOX];
    int boxed, shared;
    Py_ssize_t beyond;
    Closed closed;
    Closed prior[2]; /* what a frame adjoins */
    Py_ssize_t coded; /* how many pieces the line had just after code, */
    Buffer code_text; /* and which */
    List lists[DEEPEST];
    int listed;
    Table tables[DEEPEST];
    int tabled;
    Buffer code; /* what the open code holds so far */
    Mode mode;
    int depth;
    Buffer language;
    bool failed; /* an exception is set, or memory is short */
} Writer;

static Slice
whole(const Buffer *buffer)
{
    return (Slice){buffer->n ? buffer->p : "", buffer->n};
}

static void
set(Buffer *to, Slice text)
{
    to->n = 0;
    buffer_add(to, text.p, text.n);
}

static bool
is_alphanumeric(Py_UCS4 c)
{
    return Py_UNICODE_ISALNUM(c);
}

static Py_UCS4
first_character(Slice text)
{
    Py_ssize_t at = 0;
    return next_character(text, &at);
}

/* --- pieces of a line ------------------------------------------------------------------------------------------- */

static void
add_piece(Writer *writer, Slice text)
{
    if (!grow((void **)&writer->pieces, writer->count, &writer->room, sizeof(Py_ssize_t))) {
        writer->failed = true;
        return;
    }
    writer->pieces[writer->count++] = writer->line.n;
    buffer_add(&writer->line, text.p, text.n);
}

static Slice
piece(const Writer *writer, Py_ssize_t at)
{
    Py_ssize_t end = at + 1 < writer->count ? writer->pieces[at + 1] : writer->line.n;
    return (Slice){writer->line.p + writer->pieces[at], end - writer->pieces[at]};
}

static void
drop_pieces(Writer *writer, Py_ssize_t from)
{
    if (from < writer->count) {
        writer->line.n = writer->pieces[from];
        writer->count = from;
    }
}

static bool
is_opening(const Writer *writer)
{
    return writer->framed && writer->frames[writer->framed - 1].start == writer->count;
}

static void
forget_closed(Writer *writer)
{
    writer->closed.length = -1;
}

/* A letter follows an emphasis: if that ends in a sign, its marks would not be read as such. */
static void
soften(Writer *writer, Closed *closed)
{
    Slice bare = whole(&closed->bare);
    if (closed->length == writer->count && !is_alphanumeric(last_character(bare))) {
        bool code = false;
        if (bare.p[0] == '`' && writer->count > 1) {
            Slice before = piece(writer, writer->count - 2);
            code = before.n && before.p[before.n - 1] == '`';
        }
        drop_pieces(writer, writer->count - 1);
        set(&writer->scratch, (Slice){" ", code});
        buffer_add(&writer->scratch, bare.p, bare.n);
        add_piece(writer, whole(&writer->scratch));
    }
    forget_closed(writer);
}

static bool
is_word_at(Slice text, Py_ssize_t at)
{
    return at < text.n && is_alphanumeric(next_character(text, &at));
}

static bool
is_word_before(Slice text, Py_ssize_t at)
{
    return at > 0 && is_alphanumeric(last_character((Slice){text.p, at}));
}

static bool
is_at_end(Slice text, Py_ssize_t at)
{
    return at >= text.n || (at == text.n - 1 && text.p[at] == '\n');
}

static bool
is_reference(Slice text, Py_ssize_t at)
{
    at += at < text.n && text.p[at] == '#';
    Py_ssize_t from = at;
    while (at < text.n && at - from < 33 &&
           ((text.p[at] >= '0' && text.p[at] <= '9') || (lower(text.p[at]) >= 'a' && lower(text.p[at]) <= 'z'))) {
        at++;
    }
    return at > from && at - from <= 32 && at < text.n && text.p[at] == ';';
}

static bool
is_ascii_sign(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/* Whether the sign at `at` would mean something to Markdown. */
static bool
is_special(Slice text, Py_ssize_t at)
{
    const char *p = text.p;
    Py_ssize_t next = at + 1, after = next;
    switch (p[at]) {
    case '\\':
        return is_at_end(text, next) || is_ascii_sign(p[next]) || is_space(next_character(text, &after));
    case '`': case '[':
        return true;
    case '*':
        return at == 0 || p[at - 1] != ' ' || next >= text.n || p[next] != ' ';
    case '_':
        return !is_word_before(text, at) || !is_word_at(text, next);
    case '<':
        return is_at_end(text, next) || (lower(p[next]) >= 'a' && lower(p[next]) <= 'z') || p[next] == '/' ||
               p[next] == '!' || p[next] == '?';
    case '&':
        return is_reference(text, next);
    case '~':
        return at == 0 || is_at_end(text, next) || p[next] == '~' || p[at - 1] == '~';
    default:
        return false;
    }
}

/* Add a text such that all of it is literal. */
static void
add_literal(Buffer *to, Slice text, bool in_brackets)
{
    Py_ssize_t from = 0;
    for (Py_ssize_t at = 0; at < text.n; at++) {
        switch (text.p[at]) {
        case '\\': case '`': case '*': case '_': case '[': case '<': case '&': case '~':
            if (!is_special(text, at)) {
                continue;
            }
            break;
        case ']':
            if (!in_brackets) {
                continue;
            }
            break;
        default:
            continue;
        }
        buffer_add(to, text.p + from, at - from);
        buffer_char(to, '\\');
        from = at;
    }
    buffer_add(to, text.p + from, text.n - from);
}

static void
say(Writer *writer, Slice text)
{
    writer->work.n = 0;
    add_literal(&writer->work, text, writer->framed > 0);
    if (writer->work.failed) {
        writer->failed = true;
        return;
    }
    Slice literal = whole(&writer->work);
    if (writer->closed.length >= 0 && is_alphanumeric(first_character(literal)) && !is_opening(writer)) {
        soften(writer, &writer->closed);
    }
    add_piece(writer, literal);
}

/* The words of a text with one space between them. */
static void
add_words(Buffer *to, Slice text)
{
    bool begun = false;
    for (Py_ssize_t at = 0; at < text.n;) {
        Py_ssize_t start = at;
        while (at < text.n) {
            Py_ssize_t here = at;
            unsigned char c = (unsigned char)text.p[at];
            if (c < 0x80 ? (c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f))
                         : is_space(next_character(text, &here))) {
                break;
            }
            at = c < 0x80 ? at + 1 : here;
        }
        if (at > start) {
            if (begun) {
                buffer_char(to, ' ');
            }
            buffer_add(to, text.p + start, at - start);
            begun = true;
        }
        if (at < text.n) {
            next_character(text, &at);
        }
    }
}

static Py_ssize_t
longest_ticks(Slice text)
{
    Py_ssize_t longest = 0, now = 0;
    for (Py_ssize_t at = 0; at < text.n; at++) {
        now = text.p[at] == '`' ? now + 1 : 0;
        longest = now > longest ? now : longest;
    }
    return longest;
}

static void
add_repeated(Buffer *to, char c, Py_ssize_t n)
{
    for (Py_ssize_t each = 0; each < n; each++) {
        buffer_char(to, c);
    }
}

static bool
has_pair(Slice text, char one, char other)
{
    for (Py_ssize_t at = 0; at + 1 < text.n; at++) {
        if (text.p[at] == one && text.p[at + 1] == other) {
            return true;
        }
    }
    return false;
}

/* Literal text as code, between more backticks than it has in a row. */
static void
write_span(Writer *writer)
{
    Buffer words = {0};
    add_words(&words, whole(&writer->code));
    Slice text = whole(&words);
    if (text.n && writer->framed && has_pair(text, ']', ':')) {
        say(writer, text);
    } else if (text.n) {
        Buffer joined = {0};
        if (!is_opening(writer)) { /* two in a row would be read as one, backticks and all */
            if (writer->coded == writer->count && characters(whole(&writer->code_text)) < LONGEST_JOINED) {
                drop_pieces(writer, writer->count - 1);
                buffer_add(&joined, writer->code_text.p, writer->code_text.n);
            } else if (writer->count) {
                Slice last = piece(writer, writer->count - 1);
                if (last.n && last.p[last.n - 1] == '`' && (last.n < 2 || last.p[last.n - 2] != '\\')) {
                    add_piece(writer, (Slice){" ", 1});
                }
            }
        }
        buffer_add(&joined, text.p, text.n);
        text = whole(&joined);
        Py_ssize_t ticks = longest_ticks(text) + 1;
        bool padded = text.n && (text.p[0] == '`' || text.p[text.n - 1] == '`');
        writer->work.n = 0;
        add_repeated(&writer->work, '`', ticks);
        add_repeated(&writer->work, ' ', padded);
        buffer_add(&writer->work, text.p, text.n);
        add_repeated(&writer->work, ' ', padded);
        add_repeated(&writer->work, '`', ticks);
        add_piece(writer, whole(&writer->work));
        writer->coded = writer->count;
        set(&writer->code_text, text);
        writer->failed = writer->failed || joined.failed;
        buffer_free(&joined);
    }
    writer->failed = writer->failed || words.failed;
    buffer_free(&words);
}

static void
add_destination(Buffer *to, Slice url)
{
    for (Py_ssize_t at = 0; at < url.n; at++) {
        switch (url.p[at]) {
        case ' ': buffer_text(to, "%20"); break;
        case '\\': buffer_text(to, "%5C"); break;
        case '<': buffer_text(to, "%3C"); break;
        case '>': buffer_text(to, "%3E"); break;
        case '(': buffer_text(to, "\\("); break;
        case ')': buffer_text(to, "\\)"); break;
        default: buffer_char(to, url.p[at]);
        }
    }
}

/* --- links and emphasis ----------------------------------------------------------------------------------------- */

static void
begin(Writer *writer, Mark mark, Slice target)
{
    bool kind = mark == LINKED;
    if (++writer->depths[kind] != 1) {
        return;
    }
    bool adjoins = writer->closed.length >= 0 && writer->closed.length == writer->count && !is_opening(writer);
    Frame *frame = &writer->frames[writer->framed];
    frame->mark = mark;
    frame->start = writer->count;
    frame->adjoins = adjoins;
    set(&frame->target, target);
    if (adjoins) {
        Closed *prior = &writer->prior[writer->framed];
        prior->length = writer->closed.length;
        prior->mark = writer->closed.mark;
        set(&prior->bare, whole(&writer->closed.bare));
    }
    writer->framed++;
}

static bool
is_edge(Py_UCS4 c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == BREAK;
}

static Slice
strip_edges(Slice text)
{
    while (text.n && is_edge((unsigned char)text.p[0])) {
        text.p++;
        text.n--;
    }
    while (text.n && is_edge((unsigned char)text.p[text.n - 1])) {
        text.n--;
    }
    return text;
}

static void
note_closed(Writer *writer, Mark mark, Slice before, Slice bare, Slice after)
{
    Buffer joined = {0};
    buffer_add(&joined, before.p, before.n);
    buffer_add(&joined, bare.p, bare.n);
    set(&writer->closed.bare, whole(&joined));
    writer->failed = writer->failed || joined.failed;
    buffer_free(&joined);
    writer->closed.length = writer->count;
    writer->closed.mark = mark;
    if (after.n) {
        add_piece(writer, after);
    }
}

static bool
is_anchor(Slice text)
{
    return slice_is(text, "#") || slice_is(text, "\xc2\xb6") || slice_is(text, "\xc2\xa7") ||
           slice_is(text, "\xf0\x9f\x94\x97");
}

static void
close_link(Writer *writer, Slice before, Slice body, Slice after, Slice target)
{
    writer->work.n = 0;
    if (target.n) {
        if (!before.n && writer->line.n && writer->line.p[writer->line.n - 1] == '!') {
            writer->line.n--;
            buffer_text(&writer->line, "\\!");
        }
        buffer_add(&writer->work, before.p, before.n);
        buffer_char(&writer->work, '[');
        buffer_add(&writer->work, body.p, body.n);
        buffer_text(&writer->work, "](");
        add_destination(&writer->work, target);
        buffer_char(&writer->work, ')');
        buffer_add(&writer->work, after.p, after.n);
        add_piece(writer, whole(&writer->work));
    } else if (!is_anchor(body)) {
        buffer_add(&writer->work, before.p, before.n);
        buffer_add(&writer->work, body.p, body.n);
        buffer_add(&writer->work, after.p, after.n);
        add_piece(writer, whole(&writer->work));
    }
}

/* Emphasise right behind an emphasis: two alike become one, of two others the second is left out. */
static void
adjoin(Writer *writer, Closed *prior, Mark mark, Slice body, Slice after)
{
    Slice bare = whole(&prior->bare);
    bool clash = (bare.p[bare.n - 1] == '`' && body.p[0] == '`') || (bare.p[bare.n - 1] == '!' && body.p[0] == '[');
    Py_ssize_t marks = (Py_ssize_t)strlen(MARKS[mark]);
    writer->work.n = 0;
    if (mark == prior->mark && characters(bare) < LONGEST_JOINED && !clash) {
        Slice last = piece(writer, writer->count - 1);
        buffer_add(&writer->work, last.p, last.n - marks);
        buffer_add(&writer->work, body.p, body.n);
        buffer_text(&writer->work, MARKS[mark]);
        drop_pieces(writer, writer->count - 1);
        add_piece(writer, whole(&writer->work));
        note_closed(writer, mark, bare, body, after);
        return;
    }
    if (is_alphanumeric(first_character(body))) {
        soften(writer, prior);
    }
    buffer_add(&writer->work, body.p, body.n);
    buffer_add(&writer->work, after.p, after.n);
    add_piece(writer, whole(&writer->work));
}

/* What is next to the marks of a deletion must not lengthen them. */
static void
add_deleted(Buffer *to, Slice body)
{
    Py_ssize_t last = body.n - 1;
    if (body.p[0] == '~') {
        buffer_char(to, '\\');
    }
    if (last > 0 && body.p[last] == '~' && body.p[last - 1] != '\\') {
        buffer_add(to, body.p, last);
        buffer_text(to, "\\~");
    } else {
        buffer_add(to, body.p, body.n);
    }
}

/* Put the marks of the innermost frame around its text, and the spaces at its edges outside. */
static void
close_frame(Writer *writer)
{
    Frame *frame = &writer->frames[--writer->framed];
    Closed *prior = &writer->prior[writer->framed];
    if (frame->start >= writer->count) {
        return;
    }
    Buffer copy = {0};
    buffer_add(&copy, writer->line.p + writer->pieces[frame->start], writer->line.n - writer->pieces[frame->start]);
    drop_pieces(writer, frame->start);
    forget_closed(writer);
    writer->coded = -1;
    Slice inner = whole(&copy), body = strip_edges(inner);
    Slice before = {inner.p, body.p - inner.p}, after = {body.p + body.n, inner.n - body.n - before.n};
    if (copy.failed) {
        writer->failed = true;
    } else if (!body.n) {
        add_piece(writer, inner);
    } else if (frame->mark == LINKED) {
        close_link(writer, before, body, after, whole(&frame->target));
    } else if (frame->adjoins && !before.n) {
        adjoin(writer, prior, frame->mark, body, after);
    } else if (!before.n && writer->line.n && is_alphanumeric(last_character(whole(&writer->line))) &&
               !is_alphanumeric(first_character(body))) {
        add_piece(writer, inner); /* marks between a letter and a sign are not read as such */
    } else {
        Buffer marked = {0};
        if (frame->mark == DELETED) {
            add_deleted(&marked, body);
            body = whole(&marked);
        }
        writer->work.n = 0;
        buffer_add(&writer->work, before.p, before.n);
        buffer_text(&writer->work, MARKS[frame->mark]);
        buffer_add(&writer->work, body.p, body.n);
        buffer_text(&writer->work, MARKS[frame->mark]);
        add_piece(writer, whole(&writer->work));
        note_closed(writer, frame->mark, before, body, after);
        writer->failed = writer->failed || marked.failed;
        buffer_free(&marked);
    }
    buffer_free(&copy);
}

static void
end(Writer *writer, Mark mark)
{
    bool kind = mark == LINKED;
    if (--writer->depths[kind] == 0) {
        close_frame(writer);
    }
}

/* --- blocks ----------------------------------------------------------------------------------------------------- */

/* The line so far, in `into`, which then begins anew with the same links and emphasis open. */
static void
take_line(Writer *writer, Buffer *into)
{
    into->n = 0;
    if (!writer->count) {
        return;
    }
    int framed = writer->framed;
    while (writer->framed) {
        close_frame(writer);
    }
    add_words(into, whole(&writer->line));
    writer->line.n = 0;
    writer->count = 0;
    forget_closed(writer);
    writer->coded = -1;
    writer->framed = framed;
    for (int each = 0; each < framed; each++) {
        writer->frames[each].start = 0;
        writer->frames[each].adjoins = false;
    }
}

static void
enter(Writer *writer, const char *first, Py_ssize_t indent, bool quote, bool tight)
{
    if (writer->boxed == DEEPEST_BOX) {
        writer->beyond++;
        return;
    }
    Box *box = &writer->boxes[writer->boxed++];
    snprintf(box->first, LONGEST_MARKER, "%s", first);
    snprintf(box->rest, LONGEST_MARKER, "%*s", (int)indent, "");
    if (quote) {
        snprintf(box->rest, LONGEST_MARKER, "%s", first);
    }
    box->tight = tight;
}

static void
leave(Writer *writer)
{
    if (writer->beyond) {
        writer->beyond--;
        return;
    }
    if (writer->boxed) {
        writer->boxed--;
        writer->shared = writer->shared < writer->boxed ? writer->shared : writer->boxed;
    }
}

static bool
is_in_item(const Writer *writer)
{
    return writer->boxed && writer->shared == writer->boxed && writer->boxes[writer->boxed - 1].rest[0] == ' ';
}

static void
drop_spaces(Buffer *buffer, Py_ssize_t from)
{
    while (buffer->n > from && buffer->p[buffer->n - 1] == ' ') {
        buffer->n--;
    }
}

/* What a block begins with: a blank line, and what its boxes begin with. */
static void
begin_block(Writer *writer)
{
    Buffer *out = &writer->out;
    if (out->n && !writer->boxed) {
        buffer_text(out, "\n\n");
    } else if (out->n) {
        buffer_char(out, '\n');
        if (writer->shared >= writer->boxed || !writer->boxes[writer->shared].tight) {
            Py_ssize_t from = out->n;
            for (int each = 0; each < writer->shared; each++) {
                buffer_text(out, writer->boxes[each].rest);
            }
            drop_spaces(out, from);
            buffer_char(out, '\n');
        }
    }
    for (int each = 0; each < writer->boxed; each++) {
        buffer_text(out, writer->boxes[each].first);
    }
    for (int each = writer->shared; each < writer->boxed; each++) {
        memcpy(writer->boxes[each].first, writer->boxes[each].rest, LONGEST_MARKER);
    }
    writer->shared = writer->boxed;
}

static void
next_line(Writer *writer, bool blank)
{
    buffer_char(&writer->out, '\n');
    Py_ssize_t from = writer->out.n;
    for (int each = 0; each < writer->boxed; each++) {
        buffer_text(&writer->out, writer->boxes[each].rest);
    }
    if (blank) {
        drop_spaces(&writer->out, from);
    }
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static Py_ssize_t
behind_run(Slice text, Py_ssize_t at, const char *signs)
{
    while (at < text.n && text.p[at] && strchr(signs, text.p[at]) != NULL) {
        at++;
    }
    return at;
}

/* Where a line of a paragraph needs a backslash so that it begins nothing else; -1 if it needs none. */
static Py_ssize_t
line_start(Slice text)
{
    if (!text.n) {
        return -1;
    }
    char c = text.p[0];
    Py_ssize_t run = c == '#' ? behind_run(text, 0, "#") : c == '-' || c == '+' || c == '*';
    if (run && run <= 6 && (run == text.n || text.p[run] == ' ')) {
        return 0;
    }
    if (c == '>' || c == '|') {
        return 0;
    }
    if (is_digit(c)) {
        Py_ssize_t digits = 0;
        while (digits < text.n && is_digit(text.p[digits])) {
            digits++;
        }
        bool list = digits <= 9 && digits < text.n && (text.p[digits] == '.' || text.p[digits] == ')') &&
                    (digits + 1 == text.n || text.p[digits + 1] == ' ');
        return list ? digits : -1;
    }
    if ((c == '-' || c == '=') && behind_run(text, 0, "-=") == text.n) {
        return 0;
    }
    Py_ssize_t dashes = c == ':', from = dashes;
    dashes = behind_run(text, dashes, "-");
    return dashes > from && behind_run(text, dashes, "-|: ") == text.n ? 0 : -1;
}

static void
add_line(Writer *writer, Slice text)
{
    Py_ssize_t at = line_start(text);
    if (at >= 0) {
        buffer_add(&writer->out, text.p, at);
        buffer_char(&writer->out, '\\');
        text = (Slice){text.p + at, text.n - at};
    }
    buffer_add(&writer->out, text.p, text.n);
}

static Slice
strip_spaces(Slice text)
{
    while (text.n && text.p[0] == ' ') {
        text.p++;
        text.n--;
    }
    while (text.n && text.p[text.n - 1] == ' ') {
        text.n--;
    }
    return text;
}

/* Behind the breaks at `at` with the spaces around them; how many there are in `breaks`. */
static Py_ssize_t
behind_breaks(Slice text, Py_ssize_t at, int *breaks)
{
    *breaks = 0;
    while (at < text.n) {
        Py_ssize_t next = at + (text.p[at] == ' ');
        if (next >= text.n || text.p[next] != BREAK) {
            break;
        }
        (*breaks)++;
        at = next + 1;
        if (at < text.n && text.p[at] == ' ') {
            at++;
        }
    }
    return at;
}

/* A text with line breaks: two in a row are how many people write paragraphs. */
static void
write_broken(Writer *writer, Slice text)
{
    Py_ssize_t from = 0, at = 0;
    bool first = true;
    while (at <= text.n) {
        int breaks = 0;
        Py_ssize_t behind = at;
        if (at < text.n) {
            if (text.p[at] != BREAK && text.p[at] != ' ') {
                at++;
                continue;
            }
            behind = behind_breaks(text, at, &breaks);
            if (!breaks) {
                at++;
                continue;
            }
        }
        Slice line = strip_spaces((Slice){text.p + from, at - from});
        if (first) {
            begin_block(writer);
        } else {
            next_line(writer, !line.n && (at >= text.n || breaks > 1));
        }
        add_line(writer, line);
        first = breaks > 1;
        if (breaks == 1) {
            buffer_text(&writer->out, "  ");
        }
        if (at >= text.n) {
            return;
        }
        from = at = behind;
    }
}

static void
replace_breaks(Buffer *buffer)
{
    for (Py_ssize_t at = 0; at < buffer->n; at++) {
        if (buffer->p[at] == BREAK) {
            buffer->p[at] = ' ';
        }
    }
}

/* End the block that is being written. */
static void
flush(Writer *writer)
{
    Buffer taken = {0};
    take_line(writer, &taken);
    if (taken.n && writer->level) {
        replace_breaks(&taken);
        Slice text = strip_spaces(whole(&taken));
        begin_block(writer);
        add_repeated(&writer->out, '#', writer->level);
        buffer_char(&writer->out, ' ');
        bool sign = text.n && text.p[text.n - 1] == '#'; /* would be taken for the heading's closing one */
        buffer_add(&writer->out, text.p, text.n - sign);
        buffer_text(&writer->out, sign ? "\\#" : "");
    } else if (taken.n && memchr(taken.p, BREAK, (size_t)taken.n) == NULL) {
        begin_block(writer);
        add_line(writer, whole(&taken));
    } else if (taken.n && strip_edges(whole(&taken)).n) {
        write_broken(writer, strip_edges(whole(&taken)));
    }
    writer->failed = writer->failed || taken.failed;
    buffer_free(&taken);
}

static bool
in_data_table(const Writer *writer)
{
    return writer->tabled && writer->tables[writer->tabled - 1].shows_data;
}

/* End the block that is being written; inside a cell, only part the words. */
static void
part(Writer *writer)
{
    if (in_data_table(writer)) {
        add_piece(writer, (Slice){" ", 1});
    } else if (writer->count) {
        flush(writer);
    }
}

static Slice
strip_end(Slice text)
{
    while (text.n) {
        Py_ssize_t at = text.n - 1;
        while (at > 0 && ((unsigned char)text.p[at] & 0xc0) == 0x80) {
            at--;
        }
        if (!is_space(last_character(text))) {
            break;
        }
        text.n = at;
    }
    return text;
}

/* A block of code, its fence longer than any it holds. */
static void
write_code(Writer *writer)
{
    Buffer lines = {0};
    for (Py_ssize_t at = 0; at < writer->code.n; at++) {
        char c = writer->code.p[at];
        if (c == '\r') {
            c = '\n';
            at += at + 1 < writer->code.n && writer->code.p[at + 1] == '\n';
        }
        buffer_char(&lines, c);
    }
    Slice text = whole(&lines);
    if (text.n && text.p[0] == '\n') { /* the first line break after <pre> is not part of it */
        text.p++;
        text.n--;
    }
    text = strip_end(text);
    if (text.n) {
        Py_ssize_t ticks = longest_ticks(text) + 1, from = 0;
        ticks = ticks < 3 ? 3 : ticks;
        begin_block(writer);
        add_repeated(&writer->out, '`', ticks);
        buffer_add(&writer->out, writer->language.p, writer->language.n);
        for (Py_ssize_t at = 0; at <= text.n; at++) {
            if (at == text.n || text.p[at] == '\n') {
                next_line(writer, at == from);
                buffer_add(&writer->out, text.p + from, at - from);
                from = at + 1;
            }
        }
        next_line(writer, false);
        add_repeated(&writer->out, '`', ticks);
    }
    writer->failed = writer->failed || lines.failed;
    buffer_free(&lines);
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

static void
note_cell(Writer *writer, Table *table, Py_ssize_t at)
{
    if (!grow((void **)&table->cells, table->count, &table->room, sizeof(Py_ssize_t))) {
        writer->failed = true;
        return;
    }
    table->cells[table->count++] = at;
}

static void
open_table(Writer *writer, bool shows_data)
{
    part(writer);
    if (writer->tabled < DEEPEST) {
        Table *table = &writer->tables[writer->tabled++];
        table->shows_data = shows_data;
        table->span = 1;
        table->caption.n = table->texts.n = table->count = 0;
        table->has_rows = false;
    }
}

static void
open_row(Writer *writer)
{
    part(writer);
    if (in_data_table(writer)) {
        Table *table = &writer->tables[writer->tabled - 1];
        note_cell(writer, table, -1);
        table->has_rows = true;
    }
}

/* The value of an attribute as a number of so many digits at most; `otherwise` if it is none. */
static long
number_in(Writer *writer, Slice raw, const char *name, int digits, long otherwise)
{
    Slice value;
    int found = attribute(writer->page, raw, name, &writer->scratch, &value);
    if (found < 0) {
        writer->failed = true;
    }
    if (found <= 0 || !value.n || value.n > digits) {
        return otherwise;
    }
    long number = 0;
    for (Py_ssize_t at = 0; at < value.n; at++) {
        if (!is_digit(value.p[at])) {
            return otherwise;
        }
        number = number * 10 + (value.p[at] - '0');
    }
    return number;
}

static void
open_cell(Writer *writer, Slice raw)
{
    part(writer);
    if (!in_data_table(writer)) {
        return;
    }
    Table *table = &writer->tables[writer->tabled - 1];
    Slice value;
    long span = 1;
    int found = attribute(writer->page, raw, "colspan", &writer->scratch, &value);
    if (found < 0) {
        writer->failed = true;
    } else if (found && value.n && value.p[0] != '0') {
        span = number_in(writer, raw, "colspan", 4, 1);
    }
    table->span = span < WIDEST ? (int)span : WIDEST;
    if (!table->has_rows) {
        note_cell(writer, table, -1);
        table->has_rows = true;
    }
}

static void
close_cell(Writer *writer)
{
    if (!in_data_table(writer)) {
        part(writer);
        return;
    }
    Table *table = &writer->tables[writer->tabled - 1];
    Buffer taken = {0};
    take_line(writer, &taken);
    replace_breaks(&taken);
    Slice text = strip_spaces(whole(&taken));
    for (Py_ssize_t at = 0; at < text.n; at++) {
        if (text.p[at] == '|') {
            buffer_char(&table->texts, '\\');
        }
        buffer_char(&table->texts, text.p[at]);
    }
    for (int each = 0; each < table->span; each++) {
        note_cell(writer, table, table->texts.n);
    }
    writer->failed = writer->failed || taken.failed || table->texts.failed;
    buffer_free(&taken);
}

static void
close_caption(Writer *writer)
{
    if (!in_data_table(writer)) {
        part(writer);
        return;
    }
    Table *table = &writer->tables[writer->tabled - 1];
    take_line(writer, &table->caption);
    replace_breaks(&table->caption);
}

/* One row: where it begins in the cells, where in the texts, how many cells it has, and whether any has a text. */
typedef struct {
    Py_ssize_t first, text, count;
    bool filled;
} Row;

static bool
next_row(const Table *table, Py_ssize_t *at, Py_ssize_t *text, Row *row)
{
    if (*at >= table->count) {
        return false;
    }
    *row = (Row){.first = *at + 1, .text = *text};
    for ((*at)++; *at < table->count && table->cells[*at] >= 0; (*at)++) {
        row->filled = row->filled || table->cells[*at] > *text;
        *text = table->cells[*at];
        row->count++;
    }
    return true;
}

static void
write_row(Writer *writer, const Table *table, const Row *row, Py_ssize_t width)
{
    Py_ssize_t from = row->text;
    buffer_text(&writer->out, "| ");
    for (Py_ssize_t each = 0; each < width || each < row->count; each++) {
        if (each) {
            buffer_text(&writer->out, each < width ? " | " : " ");
        }
        if (each < row->count) {
            Py_ssize_t behind = table->cells[row->first + each];
            buffer_add(&writer->out, table->texts.p + from, behind - from);
            from = behind;
        }
    }
    buffer_text(&writer->out, " |");
}

static void
write_table(Writer *writer, const Table *table)
{
    Py_ssize_t at = 0, text = 0, widest = 0;
    bool first = true;
    Row row;
    while (next_row(table, &at, &text, &row)) {
        widest = row.filled && row.count > widest ? row.count : widest;
    }
    Py_ssize_t width = widest < WIDEST ? widest : WIDEST;
    for (at = text = 0; next_row(table, &at, &text, &row);) {
        if (!row.filled) {
            continue;
        }
        if (widest == 1) {
            add_piece(writer, (Slice){table->texts.p + row.text, text - row.text});
            flush(writer);
            continue;
        }
        if (first) {
            begin_block(writer);
        } else {
            next_line(writer, false);
        }
        write_row(writer, table, &row, width);
        if (first) {
            next_line(writer, false);
            buffer_char(&writer->out, '|');
            for (Py_ssize_t each = 0; each < width; each++) {
                buffer_text(&writer->out, " --- |");
            }
        }
        first = false;
    }
}

static void
close_table(Writer *writer)
{
    if (!writer->tabled) {
        return;
    }
    Table *table = &writer->tables[--writer->tabled];
    if (!table->shows_data) {
        part(writer);
        return;
    }
    if (in_data_table(writer)) {
        return;
    }
    flush(writer);
    if (table->caption.n) {
        begin_block(writer);
        buffer_add(&writer->out, table->caption.p, table->caption.n);
    }
    write_table(writer, table);
}

/* --- tags ------------------------------------------------------------------------------------------------------- */

/* The absolute URL of what an attribute says, in `writer->url`; empty if there is none. */
static void
resolve(Writer *writer, Slice href)
{
    writer->url.n = 0;
    if (writer->failed) {
        return;
    }
    PyObject *given = PyUnicode_DecodeUTF8(href.p, href.n, "strict");
    PyObject *made = given == NULL ? NULL : PyObject_CallOneArg(writer->absolute, given);
    Py_XDECREF(given);
    if (made == NULL) {
        writer->failed = true;
        return;
    }
    if (PyUnicode_Check(made)) {
        Py_ssize_t n;
        const char *p = PyUnicode_AsUTF8AndSize(made, &n);
        if (p == NULL) {
            writer->failed = true;
        } else {
            buffer_add(&writer->url, p, n);
        }
    }
    Py_DECREF(made);
}

/* The value of an attribute, in `into` if it is not in the page; empty if there is none. */
static Slice
value_of(Writer *writer, Slice raw, const char *name, Buffer *into)
{
    Slice value = {"", 0};
    if (attribute(writer->page, raw, name, into, &value) < 0) {
        writer->failed = true;
    }
    return value;
}

static void
open_link(Writer *writer, Slice raw)
{
    Slice href = value_of(writer, raw, "href", &writer->scratch);
    writer->url.n = 0;
    if (href.n && href.p[0] != '#' && !writer->depths[1]) { /* a link into the page itself leads nowhere from a text */
        resolve(writer, href);
    }
    begin(writer, LINKED, whole(&writer->url));
}

static void
write_image(Writer *writer, Slice raw)
{
    static const char *const sources[] = {"data-src", "data-lazy-src", "data-original", "src"};
    Slice source = {"", 0};
    for (int each = 0; each < 4 && !source.n; each++) {
        source = value_of(writer, raw, sources[each], &writer->scratch);
    }
    resolve(writer, source);
    Buffer words = {0};
    Slice alt = value_of(writer, raw, "alt", &writer->scratch);
    if (writer->url.n) {
        add_words(&words, alt);
        writer->work.n = 0;
        buffer_text(&writer->work, "![");
        add_literal(&writer->work, whole(&words), true);
        buffer_text(&writer->work, "](");
        add_destination(&writer->work, whole(&writer->url));
        buffer_char(&writer->work, ')');
        add_piece(writer, whole(&writer->work));
    } else if (alt.n) {
        say(writer, alt);
    }
    writer->failed = writer->failed || words.failed;
    buffer_free(&words);
}

static bool
is_language_sign(char c)
{
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || (c && strchr("_+#.-", c) != NULL);
}

/* The language that the class of some code names, such as `language-python`, or its `lang`. */
static void
name_language(Writer *writer, Slice raw)
{
    static const char *const prefixes[] = {"language-", "lang-", "highlight-source-", "brush: ", "brush:"};
    Slice class = value_of(writer, raw, "class", &writer->scratch);
    for (Py_ssize_t at = 0; at < class.n; at++) {
        if (at && !is_html_space(class.p[at - 1]) && class.p[at - 1] != '\v') {
            continue;
        }
        for (int each = 0; each < 5; each++) {
            Py_ssize_t n = (Py_ssize_t)strlen(prefixes[each]), end = at + n;
            if (class.n - at <= n || memcmp(class.p + at, prefixes[each], (size_t)n) != 0) {
                continue;
            }
            while (end < class.n && end - at - n < 32 && is_language_sign(class.p[end])) {
                end++;
            }
            if (end > at + n) {
                set(&writer->language, (Slice){class.p + at + n, end - at - n});
                return;
            }
        }
    }
    Slice lang = value_of(writer, raw, "lang", &writer->scratch);
    Py_ssize_t known = 0;
    while (known < lang.n && known < 32 && lang.p[known] && (strchr("+#", lang.p[known]) != NULL ||
           (lang.p[known] >= 'a' && lang.p[known] <= 'z'))) {
        known++;
    }
    if (known >= 3 && known == lang.n) { /* `lang=en` is a language that people speak */
        set(&writer->language, lang);
    }
}

static void
open_list(Writer *writer, bool numbered, Slice raw)
{
    part(writer);
    if (writer->listed < DEEPEST) {
        long number = numbered ? number_in(writer, raw, "start", 9, 1) : 0;
        writer->lists[writer->listed++] = (List){.numbered = numbered, .number = number};
    }
}

static void
open_item(Writer *writer)
{
    part(writer);
    if (in_data_table(writer)) {
        return;
    }
    List none = {0}, *list = writer->listed ? &writer->lists[writer->listed - 1] : &none;
    char marker[LONGEST_MARKER];
    snprintf(marker, sizeof marker, list->numbered ? "%ld. " : "- ", list->number);
    bool tight = list->begun || (is_in_item(writer) && (!list->numbered || list->number == 1));
    enter(writer, marker, (Py_ssize_t)strlen(marker), false, tight);
    list->begun = true;
    list->number += list->numbered;
}

static Mark
mark_of(int tag)
{
    switch (tag) {
    case STRONG: case B: return STRONGLY;
    case EM: case I: case CITE: return EMPHASIS;
    case DEL: case S: case STRIKE: return DELETED;
    default: return NO_MARK;
    }
}

static void
open_in_text(Writer *writer, int tag, Slice raw)
{
    uint16_t traits = tag_traits[tag];
    Mark mark = mark_of(tag);
    if (mark) {
        begin(writer, mark, (Slice){"", 0});
    } else if (traits & INLINE_CODE) {
        writer->code.n = 0;
        writer->depth = 1;
        writer->mode = IN_CODE;
    } else if (traits & HEADING) {
        part(writer);
        writer->level = tag - H1 + 1;
    } else {
        switch (tag) {
        case A: open_link(writer, raw); break;
        case IMG: write_image(writer, raw); break;
        case BR: add_piece(writer, in_data_table(writer) ? (Slice){" ", 1} : (Slice){"\0", 1}); break;
        case HR:
            part(writer);
            begin_block(writer);
            buffer_text(&writer->out, "***");
            break;
        case BLOCKQUOTE:
            part(writer);
            enter(writer, "> ", 0, true, false);
            break;
        case UL: case MENU: case DIR: open_list(writer, false, raw); break;
        case OL: open_list(writer, true, raw); break;
        case LI: open_item(writer); break;
        case DT:
            part(writer);
            begin(writer, STRONGLY, (Slice){"", 0});
            break;
        case DD:
            part(writer);
            if (!in_data_table(writer)) {
                enter(writer, "- ", 2, false, false);
            }
            break;
        case PRE:
            part(writer);
            writer->code.n = writer->language.n = 0;
            writer->depth = 1;
            writer->mode = IN_PRE;
            name_language(writer, raw);
            break;
        case TABLE: open_table(writer, true); break;
        case LAYOUT: open_table(writer, false); break;
        case TR: open_row(writer); break;
        case TD: case TH: open_cell(writer, raw); break;
        default:
            if (traits & BLOCK) {
                part(writer);
            }
        }
    }
}

static void
close_in_text(Writer *writer, int tag)
{
    uint16_t traits = tag_traits[tag];
    Mark mark = mark_of(tag);
    if (mark) {
        end(writer, mark);
    } else if (traits & HEADING) {
        part(writer);
        writer->level = 0;
    } else {
        switch (tag) {
        case A: end(writer, LINKED); break;
        case LI: case DD: case BLOCKQUOTE:
            part(writer);
            if (!in_data_table(writer)) {
                leave(writer);
            }
            break;
        case UL: case OL: case MENU: case DIR:
            part(writer);
            writer->listed -= writer->listed > 0;
            break;
        case DT:
            end(writer, STRONGLY);
            part(writer);
            break;
        case TD: case TH: close_cell(writer); break;
        case CAPTION: close_caption(writer); break;
        case TABLE: close_table(writer); break;
        default:
            if (traits & BLOCK) {
                part(writer);
            }
        }
    }
}

static void
write_tag(Writer *writer, const Event *event)
{
    int tag = event->tag;
    if (tag >= OTHERS) {
        return;
    }
    if (writer->mode == IN_TEXT) {
        if (event->closes) {
            close_in_text(writer, tag);
        } else {
            open_in_text(writer, tag, event_attributes(writer->page, event));
        }
    } else if (writer->mode == IN_CODE) {
        if (tag_traits[tag] & INLINE_CODE) {
            writer->depth += event->closes ? -1 : 1;
            if (!writer->depth) {
                write_span(writer);
                writer->mode = IN_TEXT;
            }
        }
    } else if (tag == PRE) {
        writer->depth += event->closes ? -1 : 1;
        if (!writer->depth) {
            write_code(writer);
            writer->mode = IN_TEXT;
        }
    } else if (!event->closes && tag == CODE && !writer->language.n) {
        name_language(writer, event_attributes(writer->page, event));
    } else if (!event->closes && tag == BR) {
        buffer_char(&writer->code, '\n');
    }
}

static void
write_event(Writer *writer, const Event *event)
{
    if (event->tag != TEXT) {
        write_tag(writer, event);
        return;
    }
    Slice text = event->space ? (Slice){" ", 1} : event_text(writer->page, event);
    if (!text.n) {
        return;
    }
    if (writer->mode == IN_TEXT) {
        say(writer, text);
    } else {
        buffer_add(&writer->code, text.p, text.n);
    }
}

static void
writer_free(Writer *writer)
{
    Buffer *buffers[] = {
        &writer->out, &writer->line, &writer->scratch, &writer->work, &writer->url, &writer->closed.bare,
        &writer->prior[0].bare, &writer->prior[1].bare, &writer->frames[0].target, &writer->frames[1].target,
        &writer->code_text, &writer->code, &writer->language,
    };
    for (size_t each = 0; each < sizeof buffers / sizeof *buffers; each++) {
        buffer_free(buffers[each]);
    }
    for (int each = 0; each < DEEPEST; each++) {
        buffer_free(&writer->tables[each].caption);
        buffer_free(&writer->tables[each].texts);
        PyMem_RawFree(writer->tables[each].cells);
    }
    PyMem_RawFree(writer->pieces);
    PyMem_RawFree(writer);
}

PyObject *
render(const Page *page, const Ranges *parts, PyObject *absolute)
{
    Writer *writer = PyMem_RawCalloc(1, sizeof(Writer));
    if (writer == NULL) {
        return PyErr_NoMemory();
    }
    writer->page = page;
    writer->absolute = absolute;
    writer->coded = writer->closed.length = -1;
    for (Py_ssize_t each = 0; each < parts->count; each++) {
        for (Py_ssize_t at = parts->ranges[each].start; at <= parts->ranges[each].end && !writer->failed; at++) {
            write_event(writer, &page->events[at]);
        }
    }
    if (!writer->failed) {
        flush(writer);
    }
    PyObject *text = NULL;
    if (writer->failed || writer->out.failed || writer->line.failed || writer->code.failed || writer->work.failed) {
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
    } else {
        text = PyUnicode_DecodeUTF8(writer->out.n ? writer->out.p : "", writer->out.n, "strict");
    }
    writer_free(writer);
    return text;
}
