/* What a page may cost a parser that builds a tree: complexity_python.py again, in C. That is the reference, and says
 * how; the tests run both against each other. All memory is that of one call.
 *
 * Subinterpreters: there is no state. Free threading: nothing is shared; it was not tried, and is not promised. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MOST_WORK 50000000
#define SMALL 8192
#define TAG_STEPS 40
#define REBUILT_STEPS 100

enum { FINE, COSTLY, UNCLEAR };
enum { HTML_MARKUP, SVG_MARKUP, MATH_MARKUP }; /* the kinds of markup */

/* The sets of complexity_python.py: a name is in those whose bits it has. */
enum {
    FORMATTING = 1, RAW = 2, MARKER = 4, SCOPE = 8, ROWS = 16, PART = 32, CLOSES_P = 64, SPECIAL = 128, IMPLIED = 256,
    BREAKS_OUT = 512, HTML_IN_SVG = 1024, HTML_IN_MATH = 2048, ODD = 4096, VOID_TAG = 8192, HEADING = 1 << 14,
    NOT_KEPT = 1 << 15, RUBY = 1 << 16, ENDS_AS_BLOCK = 1 << 17, ITEM_WALL = 1 << 18, TERM = 1 << 19, LIST = 1 << 20,
    TABLE_WALL = 1 << 21, IN_SELECT = 1 << 22, CELL = 1 << 23, IS_P = 1 << 24, IS_BUTTON = 1 << 25, IS_LI = 1 << 26,
    IS_SELECT = 1 << 27, IS_CAPTION = 1 << 28, IS_ROW = 1 << 29,
    IGNORED = 1 << 30
};

enum { OTHER, A, ANNOTATION_XML, BODY, BR, FORM, HTML, INPUT, MATH, NOBR, OPTION, SCRIPT, SVG, TABLE, TEMPLATE, XMP };

typedef struct {
    const char *name;
    int id;
    uint32_t sets;
} Known;

#define BLOCKS (CLOSES_P | SPECIAL | ITEM_WALL | ENDS_AS_BLOCK)

/* In the order of their names. */
static const Known KNOWN[] = {
    {"a", A, FORMATTING},
    {"address", OTHER, CLOSES_P | SPECIAL | ENDS_AS_BLOCK},
    {"annotation-xml", ANNOTATION_XML, 0},
    {"applet", OTHER, MARKER | SCOPE | SPECIAL | ENDS_AS_BLOCK | ITEM_WALL},
    {"area", OTHER, VOID_TAG},
    {"article", OTHER, BLOCKS},
    {"aside", OTHER, BLOCKS},
    {"b", OTHER, FORMATTING | BREAKS_OUT},
    {"base", OTHER, VOID_TAG},
    {"big", OTHER, FORMATTING | BREAKS_OUT},
    {"blockquote", OTHER, BLOCKS | BREAKS_OUT},
    {"body", BODY, BREAKS_OUT | NOT_KEPT | IGNORED},
    {"br", BR, VOID_TAG | BREAKS_OUT},
    {"button", OTHER, SPECIAL | ENDS_AS_BLOCK | ITEM_WALL | IS_BUTTON},
    {"caption", OTHER, MARKER | SCOPE | PART | SPECIAL | ITEM_WALL | IS_CAPTION},
    {"center", OTHER, BLOCKS | BREAKS_OUT},
    {"code", OTHER, FORMATTING | BREAKS_OUT},
    {"col", OTHER, VOID_TAG | IGNORED},
    {"colgroup", OTHER, SPECIAL | NOT_KEPT | ITEM_WALL | IGNORED},
    {"dd", OTHER, CLOSES_P | SPECIAL | IMPLIED | BREAKS_OUT | ENDS_AS_BLOCK | ITEM_WALL | TERM},
    {"desc", OTHER, HTML_IN_SVG},
    {"details", OTHER, BLOCKS},
    {"dialog", OTHER, CLOSES_P | ENDS_AS_BLOCK},
    {"dir", OTHER, BLOCKS},
    {"div", OTHER, CLOSES_P | SPECIAL | ENDS_AS_BLOCK | BREAKS_OUT},
    {"dl", OTHER, BLOCKS | BREAKS_OUT},
    {"dt", OTHER, CLOSES_P | SPECIAL | IMPLIED | BREAKS_OUT | ENDS_AS_BLOCK | ITEM_WALL | TERM},
    {"em", OTHER, FORMATTING | BREAKS_OUT},
    {"embed", OTHER, VOID_TAG | BREAKS_OUT},
    {"fieldset", OTHER, BLOCKS},
    {"figcaption", OTHER, BLOCKS},
    {"figure", OTHER, BLOCKS},
    {"font", OTHER, FORMATTING | ODD},
    {"footer", OTHER, BLOCKS},
    {"foreignobject", OTHER, HTML_IN_SVG},
    {"form", FORM, CLOSES_P | SPECIAL | ITEM_WALL | IGNORED},
    {"frame", OTHER, VOID_TAG | IGNORED},
    {"frameset", OTHER, ODD},
    {"h1", OTHER, HEADING | CLOSES_P | SPECIAL | BREAKS_OUT | ITEM_WALL},
    {"h2", OTHER, HEADING | CLOSES_P | SPECIAL | BREAKS_OUT | ITEM_WALL},
    {"h3", OTHER, HEADING | CLOSES_P | SPECIAL | BREAKS_OUT | ITEM_WALL},
    {"h4", OTHER, HEADING | CLOSES_P | SPECIAL | BREAKS_OUT | ITEM_WALL},
    {"h5", OTHER, HEADING | CLOSES_P | SPECIAL | BREAKS_OUT | ITEM_WALL},
    {"h6", OTHER, HEADING | CLOSES_P | SPECIAL | BREAKS_OUT | ITEM_WALL},
    {"head", OTHER, BREAKS_OUT | NOT_KEPT | IGNORED},
    {"header", OTHER, BLOCKS},
    {"hgroup", OTHER, BLOCKS},
    {"hr", OTHER, VOID_TAG | CLOSES_P | BREAKS_OUT | IN_SELECT},
    {"html", HTML, NOT_KEPT | IGNORED},
    {"i", OTHER, FORMATTING | BREAKS_OUT},
    {"iframe", OTHER, RAW},
    {"image", OTHER, NOT_KEPT},
    {"img", OTHER, VOID_TAG | BREAKS_OUT},
    {"input", INPUT, VOID_TAG},
    {"keygen", OTHER, VOID_TAG},
    {"li", OTHER, CLOSES_P | SPECIAL | IMPLIED | BREAKS_OUT | ITEM_WALL | IS_LI},
    {"link", OTHER, VOID_TAG},
    {"listing", OTHER, BLOCKS | BREAKS_OUT},
    {"main", OTHER, BLOCKS},
    {"malignmark", OTHER, ODD},
    {"marquee", OTHER, MARKER | SCOPE | SPECIAL | ENDS_AS_BLOCK | ITEM_WALL},
    {"math", MATH, 0},
    {"menu", OTHER, BLOCKS | BREAKS_OUT},
    {"meta", OTHER, VOID_TAG | BREAKS_OUT},
    {"mglyph", OTHER, ODD},
    {"mi", OTHER, HTML_IN_MATH},
    {"mn", OTHER, HTML_IN_MATH},
    {"mo", OTHER, HTML_IN_MATH},
    {"ms", OTHER, HTML_IN_MATH},
    {"mtext", OTHER, HTML_IN_MATH},
    {"nav", OTHER, BLOCKS},
    {"nobr", NOBR, FORMATTING | BREAKS_OUT},
    {"noembed", OTHER, RAW},
    {"noframes", OTHER, RAW},
    {"noscript", OTHER, SPECIAL | ITEM_WALL},
    {"object", OTHER, MARKER | SCOPE | SPECIAL | ENDS_AS_BLOCK | ITEM_WALL},
    {"ol", OTHER, BLOCKS | BREAKS_OUT | LIST},
    {"optgroup", OTHER, IMPLIED | IN_SELECT},
    {"option", OPTION, IMPLIED | IN_SELECT},
    {"p", OTHER, CLOSES_P | SPECIAL | IMPLIED | BREAKS_OUT | IS_P},
    {"param", OTHER, VOID_TAG},
    {"plaintext", OTHER, CLOSES_P | SPECIAL | ITEM_WALL},
    {"pre", OTHER, BLOCKS | BREAKS_OUT},
    {"rb", OTHER, IMPLIED | RUBY},
    {"rp", OTHER, IMPLIED | RUBY},
    {"rt", OTHER, IMPLIED | RUBY},
    {"rtc", OTHER, IMPLIED | RUBY},
    {"ruby", OTHER, BREAKS_OUT},
    {"s", OTHER, FORMATTING | BREAKS_OUT},
    {"script", SCRIPT, RAW},
    {"search", OTHER, BLOCKS},
    {"section", OTHER, BLOCKS},
    {"select", OTHER, SPECIAL | ENDS_AS_BLOCK | ITEM_WALL | IS_SELECT},
    {"small", OTHER, FORMATTING | BREAKS_OUT},
    {"source", OTHER, VOID_TAG},
    {"span", OTHER, BREAKS_OUT},
    {"strike", OTHER, FORMATTING | BREAKS_OUT},
    {"strong", OTHER, FORMATTING | BREAKS_OUT},
    {"style", OTHER, RAW},
    {"sub", OTHER, BREAKS_OUT},
    {"summary", OTHER, BLOCKS},
    {"sup", OTHER, BREAKS_OUT},
    {"svg", SVG, 0},
    {"table", TABLE, SCOPE | SPECIAL | BREAKS_OUT | ITEM_WALL | TABLE_WALL},
    {"tbody", OTHER, ROWS | PART | SPECIAL | ITEM_WALL},
    {"td", OTHER, MARKER | SCOPE | PART | SPECIAL | ITEM_WALL | CELL},
    {"template", TEMPLATE, MARKER | SCOPE | SPECIAL | ITEM_WALL | TABLE_WALL},
    {"textarea", OTHER, RAW},
    {"tfoot", OTHER, ROWS | PART | SPECIAL | ITEM_WALL},
    {"th", OTHER, MARKER | SCOPE | PART | SPECIAL | ITEM_WALL | CELL},
    {"thead", OTHER, ROWS | PART | SPECIAL | ITEM_WALL},
    {"title", OTHER, RAW | HTML_IN_SVG},
    {"tr", OTHER, PART | SPECIAL | ITEM_WALL | IS_ROW},
    {"track", OTHER, VOID_TAG},
    {"tt", OTHER, FORMATTING | BREAKS_OUT},
    {"u", OTHER, FORMATTING | BREAKS_OUT},
    {"ul", OTHER, BLOCKS | BREAKS_OUT | LIST},
    {"var", OTHER, BREAKS_OUT},
    {"wbr", OTHER, VOID_TAG},
    {"xmp", XMP, RAW | CLOSES_P},
};


/* --- names ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *p;
    Py_ssize_t n;
} Slice;

static inline char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static inline bool
is_html_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static inline bool
is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

/* As strcmp, of a name as it is written with one in small letters. */
static int
compare(Slice name, const char *known)
{
    for (Py_ssize_t at = 0; at < name.n; at++) {
        int difference = (unsigned char)lower(name.p[at]) - (unsigned char)known[at];
        if (difference || !known[at]) {
            return difference;
        }
    }
    return known[name.n] ? -1 : 0;
}

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

static const Known UNKNOWN = {"", OTHER, 0};

static const Known *
look_up(Slice name)
{
    size_t low = 0, high = sizeof KNOWN / sizeof *KNOWN;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare(name, KNOWN[middle].name);
        if (order == 0) {
            return &KNOWN[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return &UNKNOWN;
}

/* --- what is open ----------------------------------------------------------------------------------------------- */

typedef struct {
    Slice name; /* as it is written; empty for one that is closed for certain */
    const Known *known;
    int kind;
    int64_t weight;
} Open;

typedef struct {
    Open *all;
    Py_ssize_t count, room, floor;
    int64_t *marks;
    Py_ssize_t mark_count, mark_room;
    Py_ssize_t foreign; /* how many are within pictures and formulas */
    int64_t listed, certain, work, options, roots;
    int64_t text; /* characters of the text that may go on */
    struct {
        Slice name;
        const Known *known;
    } recent[64]; /* names that were looked up */
    bool froze; /* whether the last search lifted the floor */
    bool failed;
} Stack;

static inline Open *
top_of(Stack *stack)
{
    return stack->count > stack->floor ? &stack->all[stack->count - 1] : NULL;
}

static inline uint32_t
sets_of(const Open *open)
{
    return open == NULL || open->kind ? 0 : open->known->sets;
}

/* The kind of markup in which the next tag is, as far as it is certain. */
static int
foreign_kind(Stack *stack)
{
    const Open *top = top_of(stack);
    if (top == NULL || !top->kind || top->known->sets & (top->kind == SVG_MARKUP ? HTML_IN_SVG : HTML_IN_MATH)) {
        return HTML_MARKUP;
    }
    return top->kind;
}

static inline bool
is_doubtful(Stack *stack)
{
    return stack->foreign && top_of(stack) == NULL;
}

/* Room for one more in an array; false if memory is short. */
static bool
grow(Stack *stack, void **array, Py_ssize_t count, Py_ssize_t *room, size_t size)
{
    if (count < *room) {
        return true;
    }
    Py_ssize_t wanted = *room ? *room * 2 : 64;
    void *larger = PyMem_RawRealloc(*array, (size_t)wanted * size);
    if (larger == NULL) {
        stack->failed = true;
        return false;
    }
    *array = larger;
    *room = wanted;
    return true;
}

static Open *
push(Stack *stack, Slice name, const Known *known, int kind)
{
    if (!grow(stack, (void **)&stack->all, stack->count, &stack->room, sizeof *stack->all)) {
        return NULL;
    }
    Open *open = &stack->all[stack->count++];
    *open = (Open){.name = name, .known = known, .kind = kind};
    stack->foreign += kind != HTML_MARKUP;
    return open;
}

static const Known *
recall(Stack *stack, Slice name)
{
    size_t place = ((size_t)lower(name.p[0]) * 7 + (size_t)lower(name.p[name.n - 1]) * 3 + (size_t)name.n) % 64;
    if (!same_name(stack->recent[place].name, name)) {
        stack->recent[place].name = name;
        stack->recent[place].known = look_up(name);
    }
    return stack->recent[place].known;
}

static void
push_implied(Stack *stack, const char *name)
{
    Slice slice = {name, (Py_ssize_t)strlen(name)};
    push(stack, slice, look_up(slice), HTML_MARKUP);
}

static void
pop_to(Stack *stack, Py_ssize_t level)
{
    while (stack->count > level) {
        const Open *open = &stack->all[--stack->count];
        stack->certain -= open->weight;
        stack->foreign -= open->kind != HTML_MARKUP;
    }
}

/* As pop_to, by an end that is proper: formatting goes with a marker, but with one only. */
static void
close_to(Stack *stack, Py_ssize_t level)
{
    bool marked = stack->all[level].known->sets & MARKER;
    for (Py_ssize_t at = level; at < stack->count && !marked; at++) {
        marked = stack->all[at].known->sets & (CELL | IS_CAPTION);
    }
    if (marked && stack->mark_count) {
        int64_t mark = stack->marks[--stack->mark_count];
        stack->listed = mark < stack->listed ? mark : stack->listed;
    }
    pop_to(stack, level);
}

static void
freeze(Stack *stack)
{
    stack->floor = stack->count;
    stack->certain = 0;
    stack->froze = true;
}

static bool
is_walled(const Stack *stack, Py_ssize_t level, uint32_t walls)
{
    for (Py_ssize_t at = level + 1; at < stack->count; at++) {
        if (stack->all[at].kind || stack->all[at].known->sets & walls) {
            return true;
        }
    }
    return false;
}

/* Where one of that name, or of those sets, is open for certain; else -1. See the reference. */
static Py_ssize_t
find(Stack *stack, Slice name, uint32_t sets, uint32_t walls)
{
    stack->froze = false;
    for (Py_ssize_t level = stack->count - 1; level >= 0; level--) {
        Open *open = &stack->all[level];
        bool certain = level >= stack->floor;
        if (open->kind && certain) {
            freeze(stack);
            return -1;
        }
        if (!open->kind && open->name.n && (open->known->sets & sets || (name.n && same_name(open->name, name)))) {
            if (certain) {
                return level;
            }
            if (!is_walled(stack, level, walls)) {
                open->name.n = 0;
                open->known = &UNKNOWN;
            }
            freeze(stack);
            return -1;
        }
        if (certain && open->known->sets & walls) {
            return -1;
        }
        if (certain && open->known->sets & IS_SELECT) {
            freeze(stack);
            return -1;
        }
    }
    return -1;
}

static void
close_nearest(Stack *stack, Slice name, uint32_t sets, uint32_t walls)
{
    Py_ssize_t level = find(stack, name, sets, walls);
    if (level >= 0) {
        close_to(stack, level);
    }
}

static const Slice NONE = {"", 0};

/* --- tags ------------------------------------------------------------------------------------------------------- */

/* Formatting ends, or one that cannot be within itself begins. */
static void
end_formatting(Stack *stack, Slice name)
{
    bool special = false;
    for (Py_ssize_t level = stack->count - 1; level >= 0; level--) {
        const Open *open = &stack->all[level];
        bool certain = level >= stack->floor;
        if (certain && open->kind) {
            freeze(stack);
            return;
        }
        if (!open->kind && same_name(open->name, name)) {
            if (certain && !special) {
                int64_t weight = open->weight;
                pop_to(stack, level);
                stack->listed -= weight;
            } else if (certain || !special) {
                freeze(stack);
            }
            return;
        }
        if (certain && open->known->sets & MARKER) {
            return;
        }
        special = special || (certain && open->known->sets & SPECIAL);
    }
}

static void
open_table(Stack *stack)
{
    for (Py_ssize_t level = stack->count - 1; level >= stack->floor; level--) {
        const Known *known = stack->all[level].known;
        if (known->sets & MARKER) {
            return;
        }
        if (known->sets & IS_P || known->id == TABLE) {
            freeze(stack);
            return;
        }
    }
}

/* A part of a table ends those before it, if it is certain that there is a table. */
static bool
open_part(Stack *stack, uint32_t sets)
{
    uint32_t around = TABLE_WALL | (sets & CELL ? ROWS | IS_ROW : sets & IS_ROW ? ROWS : 0);
    for (Py_ssize_t level = stack->count - 1; level >= stack->floor; level--) {
        const Open *open = &stack->all[level];
        if (open->kind || open->known->id == TEMPLATE) {
            return false;
        }
        if (open->known->sets & around) {
            stack->text = 0;
            bool table = open->known->id == TABLE, row = open->known->sets & IS_ROW;
            if (level + 1 < stack->count) {
                close_to(stack, level + 1);
            }
            if (table && sets & (CELL | IS_ROW)) {
                push_implied(stack, "tbody");
            }
            if (!row && sets & CELL) {
                push_implied(stack, "tr");
            }
            return true;
        }
    }
    return false;
}

static bool
has_select(const Stack *stack)
{
    for (Py_ssize_t level = 0; level < stack->count; level++) {
        if (stack->all[level].known->sets & IS_SELECT) {
            return true;
        }
    }
    return false;
}

/* What a tag closes before it opens; false if it does not open then. */
static bool
close_before(Stack *stack, const Known *known)
{
    uint32_t sets = known->sets;
    if (sets & IS_LI) {
        close_nearest(stack, NONE, IS_LI, ITEM_WALL);
    } else if (sets & TERM) {
        close_nearest(stack, NONE, TERM, ITEM_WALL);
    }
    if (sets & CLOSES_P) {
        close_nearest(stack, NONE, IS_P, SCOPE | IS_BUTTON);
    }
    const Open *top = top_of(stack);
    if (known->id == INPUT || sets & IS_SELECT) {
        Py_ssize_t level = find(stack, NONE, IS_SELECT, SCOPE);
        if (level >= 0) {
            pop_to(stack, level);
            return false;
        }
    } else if (sets & IN_SELECT && sets_of(top) & IMPLIED && top->known->id != OPTION && has_select(stack)) {
        freeze(stack);
    }
    return true;
}

/* False if parsers may differ about what follows. */
static bool
open_html(Stack *stack, Slice name, const Known *known, int64_t raw_characters)
{
    uint32_t sets = known->sets;
    if (sets & ODD && !(sets & FORMATTING)) {
        return false;
    }
    if (!close_before(stack, known) || sets & (VOID_TAG | NOT_KEPT)) {
        return true;
    }
    const Open *top = top_of(stack);
    if ((sets & IS_SELECT && stack->froze) || (sets & PART && !open_part(stack, sets))) {
        push(stack, name, known, HTML_MARKUP);
        freeze(stack);
        return true;
    }
    if (known->id == TABLE) {
        open_table(stack);
    } else if (sets & HEADING) {
        if (sets_of(top) & HEADING) {
            pop_to(stack, stack->count - 1);
        }
    } else if (sets & IS_BUTTON) {
        close_nearest(stack, NONE, IS_BUTTON, SCOPE);
    } else if (sets & IN_SELECT) {
        stack->work += ++stack->options;
        if (top != NULL && top->known->id == OPTION && !top->kind) {
            pop_to(stack, stack->count - 1);
        }
    } else if (sets & RUBY) {
        if (sets_of(top) & IMPLIED) {
            freeze(stack);
        }
    } else if (known->id == A || known->id == NOBR) {
        end_formatting(stack, name);
    } else if (known->id == FORM && top != NULL && !top->kind && (top->known->id == TABLE || top->known->sets & (ROWS | IS_ROW))) {
        return true;
    }
    int64_t weight = sets & FORMATTING ? 1 + raw_characters / 16 : 0;
    stack->listed += weight;
    if (sets & MARKER && grow(stack, (void **)&stack->marks, stack->mark_count, &stack->mark_room, sizeof *stack->marks)) {
        stack->marks[stack->mark_count++] = stack->listed;
    }
    Open *open = push(stack, name, known, HTML_MARKUP);
    if (open != NULL) {
        open->weight = weight;
        stack->certain += weight;
    }
    return true;
}

static bool
mentions_html(Slice raw)
{
    for (Py_ssize_t at = 0; at < raw.n; at++) {
        if (raw.p[at] == '&' || (raw.n - at >= 4 && compare((Slice){raw.p + at, 4}, "html") == 0)) {
            return true;
        }
    }
    return false;
}

/* A tag opens, or opens and closes; false if parsers may differ about what follows. */
static bool
open_tag(Stack *stack, Slice name, const Known *known, Slice raw, int64_t raw_characters, bool closed)
{
    int kind = foreign_kind(stack);
    if (kind) {
        if (known->sets & ODD || (known->id == SVG && kind == MATH_MARKUP)) {
            return false;
        }
        if (!(known->sets & BREAKS_OUT)) {
            if (!closed) {
                push(stack, name, known, kind);
            }
            return known->id != ANNOTATION_XML || !mentions_html(raw);
        }
        while (foreign_kind(stack)) {
            pop_to(stack, stack->count - 1);
        }
    }
    if (is_doubtful(stack)) {
        push(stack, name, known, HTML_MARKUP);
        freeze(stack);
        return !(known->sets & RAW);
    }
    if (known->id == SVG || known->id == MATH) {
        if (!closed) {
            push(stack, name, known, known->id == SVG ? SVG_MARKUP : MATH_MARKUP);
        }
        return true;
    }
    return open_html(stack, name, known, raw_characters);
}

static void
end_foreign(Stack *stack, Slice name)
{
    for (Py_ssize_t level = stack->count - 1; level >= stack->floor && stack->all[level].kind; level--) {
        if (same_name(stack->all[level].name, name)) {
            pop_to(stack, level);
            return;
        }
    }
    freeze(stack);
}

static void
end_form(Stack *stack, Slice name)
{
    Py_ssize_t level = find(stack, name, 0, SCOPE);
    if (level < 0) {
        return;
    }
    while (sets_of(&stack->all[stack->count - 1]) & IMPLIED) {
        pop_to(stack, stack->count - 1);
    }
    stack->count--;
    memmove(&stack->all[level], &stack->all[level + 1], (size_t)(stack->count - level) * sizeof *stack->all);
}

/* A tag closes; false if parsers may differ about what follows. */
static bool
end_tag(Stack *stack, Slice name, const Known *known)
{
    const Open *top = top_of(stack);
    uint32_t sets = known->sets;
    if (top != NULL && top->kind) {
        if (sets & IS_P || known->id == BR) {
            return false;
        }
        end_foreign(stack, name);
    } else if (sets & VOID_TAG || known->id == HTML || known->id == BODY || compare(name, "head") == 0) {
        return true;
    } else if (sets & IS_P) {
        close_nearest(stack, NONE, IS_P, SCOPE | IS_BUTTON);
    } else if (sets & IS_LI) {
        close_nearest(stack, NONE, IS_LI, SCOPE | LIST);
    } else if (sets & HEADING) {
        close_nearest(stack, NONE, HEADING, SCOPE);
    } else if (sets & PART || known->id == TABLE) {
        close_nearest(stack, name, 0, TABLE_WALL | (sets & CELL ? IS_CAPTION : 0));
    } else if (known->id == FORM) {
        end_form(stack, name);
    } else if (sets & FORMATTING) {
        end_formatting(stack, name);
    } else if (known->id == TEMPLATE) {
        close_nearest(stack, name, 0, 0);
    } else {
        close_nearest(stack, name, 0, sets & ENDS_AS_BLOCK ? SCOPE : SPECIAL);
    }
    return true;
}

/* --- tokens ----------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t count;
    Py_ssize_t end;  /* where the `>` is, or the end of the page */
    bool closed;     /* a slash is before it */
} Attributes;

static Attributes
read_attributes(Slice html, Py_ssize_t at)
{
    Attributes found = {0};
    const char *p = html.p;
    Py_ssize_t n = html.n;
    while (at < n && p[at] != '>') {
        if (is_html_space(p[at]) || p[at] == '/') {
            found.closed = p[at++] == '/';
            continue;
        }
        found.closed = false;
        found.count++;
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
        if (value < n && (p[value] == '"' || p[value] == '\'')) {
            const char *end = memchr(p + value + 1, p[value], (size_t)(n - value - 1));
            at = end == NULL ? n : end - p + 1;
        } else {
            while (value < n && !is_html_space(p[value]) && p[value] != '>') {
                value++;
            }
            at = value;
        }
    }
    found.end = at;
    return found;
}

static Py_ssize_t
find_text(Slice html, Py_ssize_t at, const char *text)
{
    size_t size = strlen(text);
    while (at < html.n) {
        const char *found = memchr(html.p + at, text[0], (size_t)(html.n - at));
        if (found == NULL) {
            return html.n;
        }
        at = found - html.p;
        if ((size_t)(html.n - at) >= size && memcmp(found, text, size) == 0) {
            return at;
        }
        at++;
    }
    return html.n;
}

static Py_ssize_t
behind_text(Slice html, Py_ssize_t at, const char *text)
{
    at = find_text(html, at, text);
    return at < html.n ? at + (Py_ssize_t)strlen(text) : at;
}

static bool
begins(Slice html, Py_ssize_t at, const char *text)
{
    size_t size = strlen(text);
    return (size_t)(html.n - at) >= size && memcmp(html.p + at, text, size) == 0;
}

static Py_ssize_t
behind_comment(Slice html, Py_ssize_t at)
{
    if (begins(html, at, ">") || begins(html, at, "->")) {
        return behind_text(html, at, ">");
    }
    while ((at = find_text(html, at, "--")) < html.n) {
        if (begins(html, at, "-->")) {
            return at + 3;
        }
        if (begins(html, at, "--!>")) {
            return at + 4;
        }
        at++;
    }
    return html.n;
}

static bool
is_name_at(Slice html, Py_ssize_t at, const char *name)
{
    Py_ssize_t size = (Py_ssize_t)strlen(name);
    if (html.n - at <= size || compare((Slice){html.p + at, size}, name) != 0) {
        return false;
    }
    char next = html.p[at + size];
    return is_html_space(next) || next == '/' || next == '>';
}

/* Where the end tag of an element is whose inside is no markup. In the comments of a script, those of scripts are none. */
static Py_ssize_t
raw_end(Slice html, Py_ssize_t at, const Known *known)
{
    bool script = known->id == SCRIPT, escaped = false, doubly = false;
    for (; at < html.n; at++) {
        if (!escaped) { /* only a comment that is open is ended */
            const char *next = memchr(html.p + at, '<', (size_t)(html.n - at));
            if (next == NULL) {
                return html.n;
            }
            at = next - html.p;
        }
        char c = html.p[at];
        if (c == '<' && script && begins(html, at, "<!--")) {
            escaped = true;
            at++; /* its dashes may be those of its end */
        } else if (c == '-' && escaped && begins(html, at, "-->")) {
            escaped = doubly = false;
        } else if (c == '<' && script && is_name_at(html, at + 1, known->name)) {
            doubly = escaped;
        } else if (c == '<' && begins(html, at, "</") && is_name_at(html, at + 2, known->name)) {
            if (!doubly) {
                return at;
            }
            doubly = false;
        }
    }
    return html.n;
}

static int64_t
characters(Slice text)
{
    int64_t n = 0;
    for (Py_ssize_t at = 0; at < text.n; at++) {
        n += ((unsigned char)text.p[at] & 0xc0) != 0x80;
    }
    return n;
}

static void
charge(Stack *stack, int64_t attributes)
{
    int64_t lost = stack->listed - stack->certain;
    stack->work += TAG_STEPS + stack->count + lost * REBUILT_STEPS + attributes * (attributes + 40) / 2;
}

/* The tag at `at`, behind whose `<` (and slash) its name begins: where it ends. */
static Py_ssize_t
read_tag(Stack *stack, Slice html, Py_ssize_t at, bool ends, bool *clear)
{
    Py_ssize_t from = at;
    while (from < html.n && !is_html_space(html.p[from]) && html.p[from] != '/' && html.p[from] != '>') {
        from++;
    }
    Slice name = {html.p + at, from - at};
    const Known *known = recall(stack, name);
    Attributes attributes = read_attributes(html, from);
    Slice raw = {html.p + from, attributes.end - from};
    Py_ssize_t behind = attributes.end < html.n ? attributes.end + 1 : html.n;
    int64_t count = attributes.count;
    if (known->id == HTML || known->id == BODY) {
        count = stack->roots += count;
    }
    charge(stack, count);
    if (!ends && !(known->sets & (PART | IGNORED))) {
        stack->text = 0;
    }
    if (ends) {
        Py_ssize_t before = stack->count;
        *clear = end_tag(stack, name, known);
        stack->text = stack->count < before ? 0 : stack->text;
    } else if (known->sets & RAW && !foreign_kind(stack) && !is_doubtful(stack)) {
        if (known->id == XMP) {
            close_nearest(stack, NONE, IS_P, SCOPE | IS_BUTTON);
        }
        behind = raw_end(html, behind, known);
        if (behind < html.n) {
            Py_ssize_t end = read_attributes(html, behind + 2 + name.n).end;
            behind = end < html.n ? end + 1 : html.n;
        }
    } else {
        int64_t length = known->sets & FORMATTING ? characters(raw) : 0;
        *clear = open_tag(stack, name, known, raw, length, attributes.closed);
    }
    return behind;
}

/* Where what begins with the `<` at `at` ends. */
static Py_ssize_t
read_token(Stack *stack, Slice html, Py_ssize_t at, bool *clear)
{
    char next = at + 1 < html.n ? html.p[at + 1] : 0;
    if (is_letter(next)) {
        return read_tag(stack, html, at + 1, false, clear);
    }
    if (next == '/' && at + 2 < html.n && is_letter(html.p[at + 2])) {
        return read_tag(stack, html, at + 2, true, clear);
    }
    if (begins(html, at, "<!--")) {
        return behind_comment(html, at + 4);
    }
    if (begins(html, at, "<![CDATA[")) {
        if (foreign_kind(stack)) {
            return behind_text(html, at + 9, "]]>");
        }
        *clear = stack->foreign == 0;
    }
    return next == '!' || next == '?' || next == '/' ? behind_text(html, at + 2, ">") : at + 1;
}

static bool
begins_token(Slice html, Py_ssize_t at)
{
    char next = at + 1 < html.n ? html.p[at + 1] : 0;
    return is_letter(next) || next == '/' || next == '!' || next == '?';
}

static int
weigh_page(Stack *stack, Slice html)
{
    Py_ssize_t at = 0, from = 0; /* where the text before the next tag begins */
    while (at < html.n) {
        const char *bracket = memchr(html.p + at, '<', (size_t)(html.n - at));
        if (bracket == NULL) {
            break;
        }
        at = bracket - html.p;
        bool clear = true;
        if (begins_token(html, at)) {
            stack->text += characters((Slice){html.p + from, at - from});
            stack->work += stack->text / 16;
        }
        Py_ssize_t behind = read_token(stack, html, at, &clear);
        from = begins_token(html, at) ? behind : from;
        if (stack->work > MOST_WORK) {
            return COSTLY;
        }
        if (!clear) {
            return characters((Slice){html.p + at, html.n - at}) <= SMALL ? FINE : UNCLEAR;
        }
        if (stack->failed) {
            return FINE;
        }
        at = behind;
    }
    return FINE;
}

PyDoc_STRVAR(weigh_doc,
"weigh(html, /)\n--\n\n"
"0 for a page that can be parsed soon, 1 for one that cannot, 2 for one that may not; and its work.");

static PyObject *
weigh(PyObject *module, PyObject *given)
{
    (void)module;
    Slice html = {NULL, 0};
    if (!PyUnicode_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "weigh expects a page as text");
        return NULL;
    }
    PyObject *replaced = NULL;
    html.p = PyUnicode_AsUTF8AndSize(given, &html.n);
    if (html.p == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            return NULL;
        }
        PyErr_Clear();
        replaced = PyUnicode_AsEncodedString(given, "utf-8", "replace"); /* as parsers are given it */
        if (replaced == NULL) {
            return NULL;
        }
        html = (Slice){PyBytes_AS_STRING(replaced), PyBytes_GET_SIZE(replaced)};
    }
    Stack stack = {0};
    int found = weigh_page(&stack, html);
    Py_XDECREF(replaced);
    PyMem_RawFree(stack.all);
    PyMem_RawFree(stack.marks);
    return stack.failed ? PyErr_NoMemory() : Py_BuildValue("(iL)", found, (long long)stack.work);
}

static PyMethodDef METHODS[] = {
    {"weigh", weigh, METH_O, weigh_doc},
    {NULL},
};

static PyModuleDef_Slot SLOTS[] = {
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_complexity",
    .m_methods = METHODS,
    .m_slots = SLOTS,
};

PyMODINIT_FUNC
PyInit__complexity(void)
{
    return PyModuleDef_Init(&MODULE);
}
