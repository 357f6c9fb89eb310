/* Which part of a page is its main text: content.py again, in C. That is the reference, and says why. */
#include "_reader.h"


#define ENOUGH 500
#define LEAST_SHARE 0.5
#define LEAST_CLEANED 0.7
#define MOST_HIDDEN 0.6
#define LEAST_DECLARED (1.0 / 3)
#define SHORTEST_VOTER 25
#define FARTHEST 5
#define SIBLING 0.2
#define LEAST_SIBLING 10.0
#define LONG_PARAGRAPH 80
#define FEW_LINKS 0.25
#define CROWDED 0.2
#define CROWDED_WELL_NAMED 0.5
#define CROWDED_LIST 0.6
#define MANY_COMMAS 10
#define NEAR 8
#define SHARED 500
#define NAME_WORTH 25
#define MOST_FURNITURE 0.35
#define MOST_SMALL 0.1
#define MOST_NAMES 100 /* more than there are in the tables below */
#define INSIDE_PAGE 0.3
#define RANKED 5

typedef struct {
    Py_ssize_t size, listed, headed, commas, paragraphs, images, items;
    double linked;
} Sums;

typedef struct {
    int tag;
    Slice raw;
    Py_ssize_t start, end, around; /* -1 for the page */
    Sums in, lost; /* of what is inside, and of what was cut there */
    Py_ssize_t direct, direct_commas, children;
    double votes;
    bool holds_blocks, has_votes, is_cut, is_aside, is_data, in_figure, in_code, has_lost;
} Block;

typedef struct {
    bool by_likelihood, by_name, by_links;
} Rules;

/* How much text was cut because of a tag, role or word. */
typedef struct {
    const char *name;
    Py_ssize_t size;
} Named;

typedef struct {
    const Page *page;
    Rules rules;
    const Range *hidden; /* in order */
    Py_ssize_t hidden_count;
    const Py_ssize_t *sizes; /* of the text before each event */
    Block *blocks;
    Py_ssize_t count, room;
    Ranges cuts;
    bool edges; /* cut what its tag or role alone gives away */
    Range main; /* what says that it is the main part */
    Py_ssize_t next_link;
    Named named[MOST_NAMES];
    int names;
    const char *disbelieved[MOST_NAMES]; /* names that are no furniture here */
    int disbelieved_count;
    Buffer one, other; /* values of attributes */
    bool failed;       /* an exception is set, or memory is short */
} Reading;

/* --- names ------------------------------------------------------------------------------------------------------ */

static const char *const UNLIKELY[] = {
    "-ad-", "ad-break", "advert", "agegate", "ai2html", "banner", "breadcrumb", "byline", "comment", "community",
    "cookie", "cover-wrap", "disqus", "extra", "footer", "gdpr", "header", "legends", "menu", "modal", "mostpopular",
    "most-popular", "mostread", "most-read", "newsletter", "outbrain", "pager", "pagination", "paywall", "popup", "promo",
    "readnext", "read-next", "recirc", "related", "remark", "replies", "rss", "share", "shoutbox", "sidebar", "signup",
    "sign-up", "skyscraper", "social", "sponsor", "subscribe", "supplemental", "taboola", "toolbar", "tooltip",
    "trending", "widget", NULL,
};
static const char *const SMALL[] = {
    "actions", "author", "authors", "bio", "copyright", "disclaimer", "filter", "filters", "footer", "form", "links",
    "menu", "newsletter", "related", "search", "sidebar", "tags", NULL,
};
static const char *const BELIEVED[] = {
    "aside", "banner", "comment", "contentinfo", "footer", "header", "menu", "nav", "navigation", "related", NULL,
};
static const char *const LIKELY[] = {
    "and", "article", "body", "column", "content", "entry", "main", "post", "shadow", "story", NULL,
};
static const char *const GOOD_NAME[] = {
    "article", "blog", "body", "content", "entry", "main", "page", "post", "story", "text", NULL,
};
static const char *const BAD_NAME[] = {
    "-ad-", "banner", "byline", "caption", "com-", "comment", "contact", "credit", "footer", "gdpr", "hidden", "masthead",
    "media", "meta", "newsletter", "outbrain", "promo", "recommend", "related", "scroll", "share", "shopping",
    "shoutbox", "sidebar", "skyscraper", "sponsor", "subscribe", "tags", "widget", NULL,
};
static const char *const ROLES[] = {
    "navigation", "banner", "contentinfo", "complementary", "search", "menu", "menubar", "alert", "alertdialog", "dialog",
    NULL,
};
static const char *const EDGE_ROLES[] = {"navigation", "banner", "contentinfo", NULL};

static bool
begins(Slice text, Py_ssize_t at, const char *word)
{
    for (; *word; word++, at++) {
        if (at >= text.n || lower(text.p[at]) != *word) {
            return false;
        }
    }
    return true;
}

/* The first of the words that is in a text, NULL if none is. */
static const char *
first_of(Slice text, const char *const *words)
{
    for (Py_ssize_t at = 0; at < text.n; at++) {
        char first = lower(text.p[at]);
        for (const char *const *word = words; *word; word++) {
            if ((*word)[0] == first && begins(text, at, *word)) {
                return *word;
            }
        }
    }
    return NULL;
}

static bool
has_any(Slice text, const char *const *words)
{
    return first_of(text, words) != NULL;
}

static bool
is_small_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* The first whole word of a name that is one of `words`; a large letter begins one too. */
static const char *
first_word_of(Slice name, const char *const *words)
{
    for (Py_ssize_t at = 0; at < name.n;) {
        Py_ssize_t start = at++;
        char first = lower(name.p[start]);
        if (!is_small_letter(first)) {
            continue;
        }
        while (at < name.n && is_small_letter(name.p[at])) {
            at++;
        }
        for (const char *const *word = words; *word; word++) {
            if ((*word)[0] == first && (Py_ssize_t)strlen(*word) == at - start && begins(name, start, *word)) {
                return *word;
            }
        }
    }
    return NULL;
}

static bool
is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

/* The value of an attribute, empty if there is none. */
static Slice
value_of(Reading *reading, Slice raw, const char *name, Buffer *into)
{
    Slice value = {"", 0};
    if (attribute(reading->page, raw, name, into, &value) < 0) {
        reading->failed = true;
    }
    return value;
}

static const char *
role_of(Reading *reading, Slice raw)
{
    Slice role = value_of(reading, raw, "role", &reading->one);
    for (const char *const *each = ROLES; *each; each++) {
        if (slice_is(role, *each)) {
            return *each;
        }
    }
    return NULL;
}

/* The role or word that gives a block away as furniture, NULL if none does. */
static const char *
furniture_name(Reading *reading, Slice raw, bool small, bool fenced)
{
    Slice class = value_of(reading, raw, "class", &reading->one), id = value_of(reading, raw, "id", &reading->other);
    const char *name = small ? first_word_of(class, SMALL) : NULL;
    name = small && !name ? first_word_of(id, SMALL) : name;
    if (!name && !fenced) {
        name = first_of(class, UNLIKELY);
        name = name ? name : first_of(id, UNLIKELY);
        name = name && !has_any(class, LIKELY) && !has_any(id, LIKELY) ? name : NULL;
        const char *role = role_of(reading, raw); /* reuses what `class` may be in */
        return role ? role : name;
    }
    return name ? name : role_of(reading, raw);
}

static int
worth_of_name(Slice name)
{
    bool bad = has_any(name, BAD_NAME) || (name.n == 3 && begins(name, 0, "hid"));
    return name.n ? has_any(name, GOOD_NAME) - bad : 0;
}

static int
weight(Reading *reading, const Block *block)
{
    if (!reading->rules.by_name || !block->raw.n) {
        return 0;
    }
    int worth = worth_of_name(value_of(reading, block->raw, "class", &reading->one));
    worth += worth_of_name(value_of(reading, block->raw, "id", &reading->one));
    return NAME_WORTH * (worth + worth_of_name(value_of(reading, block->raw, "itemprop", &reading->one)));
}

static bool
is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Whether it is called `share` or `sharedaddy`, by itself or between underscores. */
static bool
is_sharing(Slice name)
{
    for (Py_ssize_t at = 0; at < name.n; at++) {
        if (!begins(name, at, "share") || (at && is_word(name.p[at - 1]) && name.p[at - 1] != '_')) {
            continue;
        }
        Py_ssize_t end = at + (begins(name, at, "sharedaddy") ? 10 : 5);
        if (end >= name.n || !is_word(name.p[end]) || name.p[end] == '_') {
            return true;
        }
    }
    return false;
}

static Py_ssize_t
behind_spaces(Slice text, Py_ssize_t at)
{
    while (at < text.n && (is_html_space(text.p[at]) || text.p[at] == '\v')) {
        at++;
    }
    return at;
}

static bool
is_styled_away(Slice style)
{
    static const char *const away[][2] = {{"display", "none"}, {"visibility", "hidden"}};
    for (Py_ssize_t start = 0; start < style.n; start++) {
        for (int each = 0; each < 2; each++) {
            if (begins(style, start, away[each][0])) {
                Py_ssize_t at = behind_spaces(style, start + (Py_ssize_t)strlen(away[each][0]));
                if (at < style.n && style.p[at] == ':' && begins(style, behind_spaces(style, at + 1), away[each][1])) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* --- sums ------------------------------------------------------------------------------------------------------- */

static int
add_range(Ranges *to, Py_ssize_t start, Py_ssize_t end)
{
    if (!grow((void **)&to->ranges, to->count, &to->room, sizeof(Range))) {
        return 0;
    }
    to->ranges[to->count++] = (Range){start, end};
    return 1;
}

static Py_ssize_t
commas_in(Slice text)
{
    Py_ssize_t n = 0;
    const unsigned char *p = (const unsigned char *)text.p;
    for (Py_ssize_t at = 0; at < text.n; at++) {
        if (p[at] == ',') {
            n++;
        } else if (p[at] >= 0xd8 && at + 1 < text.n) {
            Py_ssize_t here = at;
            switch (next_character(text, &here)) {
            case 0x60c: case 0x2e32: case 0x2e34: case 0x2e41: case 0x3001: case 0xfe10: case 0xfe50: case 0xff0c: n++;
            }
            at = here - 1;
        }
    }
    return n;
}

static double
density(const Block *block)
{
    return block->in.size ? block->in.linked / (double)block->in.size : 0.0;
}

static bool
is_list(int tag)
{
    return tag == UL || tag == OL;
}

static uint16_t
traits(const Block *block)
{
    return tag_traits[block->tag];
}

static void
add_sums(Sums *to, const Sums *more, int times)
{
    to->size += times * more->size;
    to->linked += times * more->linked;
    to->commas += times * more->commas;
    to->paragraphs += times * more->paragraphs;
    to->images += times * more->images;
    to->items += times * more->items;
    to->headed += times * more->headed;
    to->listed += times * more->listed;
}

static void
add_inner(Sums *to, const Block *block)
{
    add_sums(to, &block->in, 1);
    to->paragraphs += block->tag == P;
    to->items += block->tag == LI;
    to->headed += traits(block) & HEADING ? block->in.size - block->in.headed : 0;
    to->listed += is_list(block->tag) ? block->in.size - block->in.listed : 0;
}

static void
close_block(Reading *reading, Block *block)
{
    if (block->around < 0) {
        return;
    }
    Block *around = &reading->blocks[block->around];
    if (block->tag == A) {
        Slice href = value_of(reading, block->raw, "href", &reading->one);
        block->in.linked = (double)block->in.size * (href.n && href.p[0] == '#' ? INSIDE_PAGE : 1.0);
    }
    add_inner(&around->in, block);
    if (traits(block) & BLOCK) {
        around->holds_blocks = true;
    } else {
        around->direct += block->direct;
        around->direct_commas += block->direct_commas;
        around->holds_blocks = around->holds_blocks || block->holds_blocks;
    }
}

/* Whether a link opens in it. To be asked in the order of the events. */
static bool
has_link(Reading *reading, Py_ssize_t at)
{
    const Page *page = reading->page;
    Py_ssize_t link = reading->next_link > at ? reading->next_link : at;
    while (link < page->count && (page->events[link].tag != A || page->events[link].closes)) {
        link++;
    }
    reading->next_link = link;
    return link < page->events[at].end;
}

/* The tag or role by which a block says that it is no part of the main text, NULL if it does not. */
static const char *
edge_of(Reading *reading, Py_ssize_t at, bool in_part)
{
    const Event *event = &reading->page->events[at];
    switch (event->tag) {
    case ASIDE:
        if (in_part && !has_link(reading, at)) { /* a note */
            return NULL;
        }
        return tag_names[ASIDE];
    case NAV: case MENU: return tag_names[event->tag];
    case HEADER: case FOOTER:
        if (!in_part) {
            return tag_names[event->tag];
        }
    }
    if (!event->length || tag_traits[event->tag] & KEEPS_NAME) {
        return NULL;
    }
    const char *role = role_of(reading, event_attributes(reading->page, event));
    return role && is_among(role, EDGE_ROLES) ? role : NULL;
}

/* The tag, role or word that gives a block away as furniture, NULL if none does. */
static const char *
furniture(Reading *reading, Py_ssize_t at, Py_ssize_t size, bool fenced, bool in_part)
{
    const Event *event = &reading->page->events[at];
    double whole = (double)reading->sizes[reading->page->count];
    const char *edge = edge_of(reading, at, in_part);
    bool beside_main = event->end < reading->main.start || reading->main.end < at;
    if ((double)size > MOST_FURNITURE * whole && !(edge && beside_main)) {
        return NULL;
    }
    if ((edge && reading->edges) || !reading->rules.by_likelihood) {
        return reading->edges ? edge : NULL;
    }
    bool small = (double)size <= MOST_SMALL * whole;
    if (small && (event->tag == FORM || event->tag == FOOTER)) {
        return tag_names[event->tag];
    }
    bool named = event->length && !(tag_traits[event->tag] & KEEPS_NAME);
    return named ? furniture_name(reading, event_attributes(reading->page, event), small, fenced) : NULL;
}

/* Note that so much is cut because of a name; false if the name is not believed. */
static bool
note_cut(Reading *reading, const char *name, Py_ssize_t size)
{
    for (int each = 0; each < reading->disbelieved_count; each++) {
        if (strcmp(reading->disbelieved[each], name) == 0) {
            return false;
        }
    }
    int at = 0;
    while (at < reading->names && strcmp(reading->named[at].name, name) != 0) {
        at++;
    }
    if (at == reading->names && at < MOST_NAMES) {
        reading->named[reading->names++] = (Named){name, 0};
    }
    if (at < MOST_NAMES) {
        reading->named[at].size += size;
    }
    return true;
}

static int
add_block(Reading *reading, Block block)
{
    if (!grow((void **)&reading->blocks, reading->count, &reading->room, sizeof(Block))) {
        return 0;
    }
    reading->blocks[reading->count++] = block;
    return 1;
}

static bool
is_node(int tag)
{
    return tag < OTHERS && (tag_traits[tag] & BLOCK || tag == A || tag == IMG || tag == CODE);
}

static int
measure_once(Reading *reading)
{
    const Page *page = reading->page;
    Py_ssize_t inside = 0, tables = -1, part = -1, next = 0;
    reading->count = reading->cuts.count = reading->names = 0;
    reading->next_link = 0;
    if (!add_block(reading, (Block){.tag = HTML, .raw = {"", 0}, .end = page->count - 1, .around = -1})) {
        return 0;
    }
    for (Py_ssize_t at = 0; at < page->count; at++) {
        const Event *event = &page->events[at];
        Block *block = &reading->blocks[inside];
        while (next < reading->hidden_count && reading->hidden[next].start < at) {
            next++;
        }
        if (next < reading->hidden_count && reading->hidden[next].start == at) {
            Range hidden = reading->hidden[next];
            if (!add_range(&reading->cuts, hidden.start, hidden.end)) {
                return 0;
            }
            at = hidden.end;
        } else if (event->tag == TEXT) {
            if (!event->space) {
                Slice text = event_text(page, event);
                Py_ssize_t size = reading->sizes[at + 1] - reading->sizes[at];
                Py_ssize_t commas = size > 10 ? commas_in(text) : 0;
                block->in.size += size;
                block->direct += size;
                block->in.commas += commas;
                block->direct_commas += commas;
            }
        } else if (event->closes) {
            if (block->end == at) {
                close_block(reading, block);
                inside = block->around < 0 ? 0 : block->around;
            }
        } else if (is_node(event->tag)) {
            Py_ssize_t size = reading->sizes[event->end] - reading->sizes[at];
            const char *name = furniture(reading, at, size, at < tables, at < part);
            if (name && note_cut(reading, name, size)) {
                if (!add_range(&reading->cuts, at, event->end)) {
                    return 0;
                }
                at = event->end;
            } else if (event->tag == IMG) {
                block->in.images++;
            } else if (event->end > at) {
                block->children += event->tag != A;
                Slice raw = event_attributes(page, event);
                Block new = {.tag = event->tag, .raw = raw, .start = at, .end = event->end, .around = inside};
                inside = reading->count;
                if (!add_block(reading, new)) {
                    return 0;
                }
                if ((event->tag == TABLE || event->tag == LAYOUT || event->tag == CODE) && event->end > tables) {
                    tables = event->end;
                }
                if ((event->tag == ARTICLE || event->tag == MAIN || event->tag == SECTION) && event->end > part) {
                    part = event->end;
                }
            }
        }
        if (reading->failed) {
            return 0;
        }
    }
    return 1;
}

/* The part with the most text that says by its tag or role that it is the main one; the page, if none has any. */
static Range
largest_main(Reading *reading)
{
    const Page *page = reading->page;
    Range best = {0, page->count};
    Py_ssize_t most = 0;
    for (Py_ssize_t at = 0; at < page->count; at++) {
        const Event *event = &page->events[at];
        if (event->tag == TEXT || event->closes || reading->sizes[event->end] - reading->sizes[at] <= most) {
            continue;
        }
        if (event->tag == MAIN || event->tag == ARTICLE ||
            (event->length &&
             slice_is(value_of(reading, event_attributes(page, event), "role", &reading->one), "main"))) {
            best = (Range){at, event->end};
            most = reading->sizes[event->end] - reading->sizes[at];
        }
    }
    return best;
}

static int
measure(Reading *reading)
{
    double most = MOST_FURNITURE * (double)reading->sizes[reading->page->count];
    reading->main = largest_main(reading);
    if (reading->failed || !measure_once(reading)) {
        return 0;
    }
    for (int each = 0; each < reading->names; each++) {
        const Named *named = &reading->named[each];
        if ((double)named->size > most && !is_among(named->name, BELIEVED)) {
            reading->disbelieved[reading->disbelieved_count++] = named->name;
        }
    }
    return !reading->disbelieved_count || measure_once(reading);
}

/* --- votes ------------------------------------------------------------------------------------------------------ */

static int
worth_of_tag(int tag)
{
    switch (tag) {
    case DIV: case ARTICLE: case MAIN: return 5;
    case PRE: case TD: case BLOCKQUOTE: return 3;
    case ADDRESS: case OL: case UL: case DL: case DD: case DT: case LI: case FORM: return -3;
    case H1: case H2: case H3: case H4: case H5: case H6: case TH: return -5;
    default: return 0;
    }
}

static void
cast(Reading *reading, Py_ssize_t at, Py_ssize_t size, Py_ssize_t commas)
{
    if (size < SHORTEST_VOTER) {
        return;
    }
    double vote = (double)(2 + commas + (size / 100 < 3 ? size / 100 : 3));
    for (int level = 0; level < FARTHEST && at >= 0; at = reading->blocks[at].around) {
        Block *block = &reading->blocks[at];
        if (block->tag == A) {
            continue;
        }
        if (!block->has_votes) {
            block->has_votes = true;
            block->votes = worth_of_tag(block->tag) + weight(reading, block);
        }
        block->votes += vote / (level > 1 ? level * 3 : level + 1);
        level++;
    }
}

static void
vote(Reading *reading)
{
    for (Py_ssize_t at = 0; at < reading->count; at++) {
        Block *block = &reading->blocks[at];
        if (traits(block) & VOTES || (block->tag == DIV && !block->holds_blocks)) {
            cast(reading, block->around, block->in.size, block->in.commas);
        } else if (traits(block) & HOLDS && block->holds_blocks) {
            cast(reading, at, block->direct, block->direct_commas);
        }
    }
    for (Py_ssize_t at = 0; at < reading->count; at++) {
        Block *block = &reading->blocks[at];
        double share = density(block);
        block->votes *= 1 - (share < 1.0 ? share : 1.0);
    }
}

static bool
is_page(const Block *block)
{
    return block->tag == HTML || block->tag == BODY;
}

/* The best, or what is around it and three more that are nearly as good. */
static Py_ssize_t
around_several(const Reading *reading, const Py_ssize_t *ranked, int count)
{
    const Block *blocks = reading->blocks;
    int rivals = 0;
    for (int each = 1; each < count; each++) {
        rivals += blocks[ranked[each]].votes >= 0.75 * blocks[ranked[0]].votes;
    }
    Py_ssize_t around = rivals >= 3 ? blocks[ranked[0]].around : -1;
    for (; around >= 0 && !is_page(&blocks[around]); around = blocks[around].around) {
        int inside = 0;
        for (int each = 1; each <= rivals; each++) { /* they are ranked: rivals come first */
            const Block *rival = &blocks[ranked[each]];
            inside += blocks[around].start < rival->start && rival->start <= blocks[around].end;
        }
        if (inside >= 3) {
            return around;
        }
    }
    return ranked[0];
}

/* What is around the best block, if it has more votes: text that stands in several blocks. */
static Py_ssize_t
higher(const Reading *reading, Py_ssize_t best)
{
    const Block *blocks = reading->blocks;
    double last = blocks[best].votes, least = last / 3;
    for (Py_ssize_t around = blocks[best].around; around >= 0 && !is_page(&blocks[around]);
         around = blocks[around].around) {
        if (blocks[around].has_votes) {
            if (blocks[around].votes < least) {
                break;
            }
            if (blocks[around].votes > last) {
                return around;
            }
            last = blocks[around].votes;
        }
    }
    return best;
}

static bool
ends_sentence(const Page *page, const Block *block)
{
    bool point = false;
    for (Py_ssize_t at = block->start; at < block->end; at++) {
        const Event *event = &page->events[at];
        if (event->tag != TEXT) {
            continue;
        }
        Slice text = event->space ? (Slice){" ", 1} : event_text(page, event);
        for (Py_ssize_t next = 0; next < text.n;) {
            Py_UCS4 c = next_character(text, &next);
            if (point && is_space(c)) {
                return true;
            }
            point = c == '.';
        }
    }
    return point;
}

static bool
goes_with(const Reading *reading, const Block *block, const Block *best, double needed)
{
    bool alike = best->raw.n && best->raw.n == block->raw.n && memcmp(best->raw.p, block->raw.p, (size_t)best->raw.n) == 0;
    if (block->has_votes && block->votes + (alike ? SIBLING * best->votes : 0) >= needed) {
        return true;
    }
    if (block->tag != P || !block->in.size) {
        return false;
    }
    if (block->in.size > LONG_PARAGRAPH) {
        return density(block) < FEW_LINKS;
    }
    return block->in.linked <= 0 && ends_sentence(reading->page, block);
}

static const char *const MAIN_NAMES[] = {
    "content", "main", "main-content", "maincontent", "page-content", "site-content", "post-content", "entry-content",
    "article-content", "article-body", "articlebody", "post-body", "story-body", "post", "entry", "article", "hentry",
    "body-content", "markdown-body", "mw-content-text", "bodycontent", "blog-post", NULL,
};

/* Whether one of the words is a name for the main part. */
static bool
names_main(Slice words)
{
    for (Py_ssize_t at = 0; at < words.n;) {
        Py_ssize_t start = at, end = at;
        while (at < words.n) {
            end = at;
            if (is_space(next_character(words, &at))) {
                break;
            }
            end = at;
        }
        for (const char *const *name = MAIN_NAMES; *name; name++) {
            if ((Py_ssize_t)strlen(*name) == end - start && begins(words, start, *name)) {
                return true;
            }
        }
    }
    return false;
}

static bool
is_main(Reading *reading, const Block *block)
{
    if (block->tag == MAIN || block->tag == ARTICLE) {
        return true;
    }
    if (block->tag == A || !block->raw.n) {
        return false;
    }
    return slice_is(value_of(reading, block->raw, "role", &reading->one), "main") ||
           names_main(value_of(reading, block->raw, "id", &reading->one)) ||
           names_main(value_of(reading, block->raw, "class", &reading->one));
}

/* The largest part that calls itself the main one; the page, if there is none that has enough. */
static Py_ssize_t
declared(Reading *reading)
{
    Py_ssize_t best = 0, most = -1;
    for (Py_ssize_t at = 1; at < reading->count; at++) {
        if (reading->blocks[at].in.size > most && is_main(reading, &reading->blocks[at])) {
            best = at;
            most = reading->blocks[at].in.size;
        }
    }
    return (double)most > LEAST_DECLARED * (double)reading->blocks[0].in.size ? best : 0;
}

/* The blocks that have the main text, in `parts`. */
static int
choose(Reading *reading, Ranges *parts)
{
    Block *blocks = reading->blocks;
    Py_ssize_t ranked[RANKED];
    int count = 0;
    for (Py_ssize_t at = 0; at < reading->count; at++) {
        if (!blocks[at].has_votes) {
            continue;
        }
        int place = count < RANKED ? count++ : RANKED;
        while (place > 0 && blocks[ranked[place - 1]].votes < blocks[at].votes) {
            if (place < RANKED) {
                ranked[place] = ranked[place - 1];
            }
            place--;
        }
        if (place < RANKED) {
            ranked[place] = at;
        }
    }
    if (!count || is_page(&blocks[ranked[0]])) {
        Py_ssize_t part = declared(reading);
        return add_range(parts, part, part);
    }
    Py_ssize_t best = higher(reading, around_several(reading, ranked, count)), around = blocks[best].around;
    while (around >= 0 && !is_page(&blocks[around]) && blocks[around].tag != A && blocks[around].children == 1) {
        best = around;
        around = blocks[around].around;
    }
    if (around < 0) {
        return add_range(parts, best, best);
    }
    double needed = SIBLING * blocks[best].votes > LEAST_SIBLING ? SIBLING * blocks[best].votes : LEAST_SIBLING;
    for (Py_ssize_t at = around + 1; at < reading->count && blocks[at].start <= blocks[around].end; at++) {
        if (blocks[at].around == around && blocks[at].tag != A &&
            (at == best || goes_with(reading, &blocks[at], &blocks[best], needed)) && !add_range(parts, at, at)) {
            return 0;
        }
    }
    return 1;
}

/* --- cleaning --------------------------------------------------------------------------------------------------- */

static bool
is_aside(Reading *reading, const Block *block)
{
    if (block->tag == FOOTER || (block->tag == ASIDE && block->in.linked > 0)) {
        return true;
    }
    if ((block->tag == H1 || block->tag == H2) && weight(reading, block) < 0) {
        return true;
    }
    return block->raw.n && block->in.size < SHARED &&
           (is_sharing(value_of(reading, block->raw, "class", &reading->one)) ||
            is_sharing(value_of(reading, block->raw, "id", &reading->one)));
}

static bool
shows_data(Reading *reading, const Block *table)
{
    if (slice_is(value_of(reading, table->raw, "role", &reading->one), "presentation")) {
        return false;
    }
    Py_ssize_t rows = 0, columns = 0, cells = 0;
    for (Py_ssize_t at = table->start + 1; at < table->end; at++) {
        const Event *event = &reading->page->events[at];
        if (event->tag == TEXT || event->closes) {
            continue;
        }
        if (event->tag < OTHERS && tag_traits[event->tag] & HEADS_TABLE) {
            return true;
        }
        if (event->tag == TABLE || event->tag == LAYOUT) {
            return false;
        }
        if (event->tag == TR) {
            rows++;
            cells = 0;
        } else if (event->tag == TD && ++cells > columns) {
            columns = cells;
        }
    }
    return rows > 1 && columns > 1 && (rows >= 10 || columns > 4 || rows * columns > 10);
}

static bool
is_box_of_pictures(const Block *block)
{
    const Sums *in = &block->in;
    if (!in->size && !in->images) {
        return true;
    }
    return !block->in_figure && in->images > 1 && (double)in->paragraphs < (double)in->images / 2;
}

static bool
ends_with(Slice text, const char *end)
{
    Py_ssize_t n = (Py_ssize_t)strlen(end);
    return text.n >= n && memcmp(text.p + text.n - n, end, (size_t)n) == 0;
}

/* Whether the text right before it ends with a colon. */
static bool
is_announced(const Page *page, const Block *block)
{
    for (Py_ssize_t at = block->start - 1; at >= 0 && at >= block->start - NEAR; at--) {
        const Event *event = &page->events[at];
        if (event->tag == TEXT && !event->space) {
            Slice text = event_text(page, event);
            text.n -= ends_with(text, " ");
            return ends_with(text, ":") || ends_with(text, "\xef\xbc\x9a");
        }
    }
    return false;
}

/* Whether it is a box of links, pictures or controls. `holds_data` says whether a table of data is inside. */
static bool
is_box(Reading *reading, const Block *block, bool holds_data)
{
    const Sums *in = &block->in;
    if (holds_data || block->in_code) {
        return false;
    }
    int worth = weight(reading, block);
    if (worth < 0 || in->commas >= MANY_COMMAS) {
        return worth < 0;
    }
    if (is_list(block->tag) || ((double)in->listed > 0.9 * (double)in->size && in->size)) {
        bool of_links = is_list(block->tag) && density(block) > CROWDED_LIST && in->items > 2;
        return is_box_of_pictures(block) || (of_links && !is_announced(reading->page, block));
    }
    if (is_box_of_pictures(block) || in->items - 100 > in->paragraphs) {
        return true;
    }
    if (!block->in_figure && in->size < SHORTEST_VOTER && density(block) > 0 &&
        (double)in->headed < 0.9 * (double)in->size) {
        return in->images == 0 || in->images > 2;
    }
    return density(block) > (worth < NAME_WORTH ? CROWDED : CROWDED_WELL_NAMED);
}

static void
inherit(Block *block, const Block *around)
{
    block->in_figure = block->in_figure || around->in_figure || around->tag == FIGURE;
    block->in_code = block->in_code || around->in_code || around->is_data || around->tag == CODE || around->tag == PRE;
}

/* From the inside out: what was cut is no part of the sums around it, and boxes are judged by what remains. */
static int
sum_and_cut(Reading *reading, Py_ssize_t part, Py_ssize_t behind)
{
    Py_ssize_t data = reading->page->count; /* where the nearest table of data behind opens */
    for (Py_ssize_t at = behind - 1; at > part; at--) {
        Block *block = &reading->blocks[at], *around = &reading->blocks[block->around];
        if (block->is_cut && !block->is_aside) {
            continue;
        }
        if (block->has_lost) {
            add_sums(&block->in, &block->lost, -1);
        }
        if (traits(block) & BOX && !block->is_cut && is_box(reading, block, data <= block->end)) {
            block->is_cut = true;
            if (!add_range(&reading->cuts, block->start, block->end)) {
                return 0;
            }
        }
        if (block->has_lost) {
            add_sums(&around->lost, &block->lost, 1);
        }
        if (block->is_cut) {
            add_inner(&around->lost, block);
        }
        around->has_lost = around->has_lost || block->has_lost || block->is_cut;
        if (block->is_data) {
            data = block->start;
        }
    }
    return !reading->failed;
}

/* Cut what does not belong to the main text from inside a part of it: asides, and boxes, the inner ones first. */
static int
clean(Reading *reading, Py_ssize_t part)
{
    Block *blocks = reading->blocks;
    Py_ssize_t behind = part + 1, gone = -1; /* where the last aside ends */
    for (Py_ssize_t around = part; around >= 0; around = blocks[around].around) {
        inherit(&blocks[part], &blocks[around]);
    }
    for (; behind < reading->count && blocks[behind].start <= blocks[part].end; behind++) {
        Block *block = &blocks[behind];
        block->is_data = block->tag == TABLE && shows_data(reading, block);
        inherit(block, block);
        inherit(block, &blocks[block->around]);
        block->is_cut = block->start <= gone;
        if (!block->is_cut && is_aside(reading, block)) {
            block->is_cut = block->is_aside = true;
            gone = block->end;
            if (!add_range(&reading->cuts, block->start, block->end)) {
                return 0;
            }
        }
    }
    return reading->rules.by_links ? sum_and_cut(reading, part, behind) : !reading->failed;
}

static int
by_start(const void *one, const void *other)
{
    Py_ssize_t a = ((const Range *)one)->start, b = ((const Range *)other)->start;
    return (a > b) - (a < b);
}

/* Add the events of a part without what was cut inside of it; how much text that is, or -1. */
static Py_ssize_t
keep(const Reading *reading, const Block *part, Ranges *kept)
{
    Py_ssize_t at = part->start, size = 0, first = 0, behind = reading->cuts.count;
    while (first < behind) {
        Py_ssize_t middle = (first + behind) / 2;
        if (reading->cuts.ranges[middle].start < at) {
            first = middle + 1;
        } else {
            behind = middle;
        }
    }
    for (Py_ssize_t each = first; each <= reading->cuts.count; each++) {
        Range next = {part->end + 1, part->end};
        if (each < reading->cuts.count && reading->cuts.ranges[each].start <= part->end) {
            next = reading->cuts.ranges[each];
        } else {
            each = reading->cuts.count;
        }
        if (next.start >= at) {
            if (next.start > at && !add_range(kept, at, next.start - 1)) {
                return -1;
            }
            size += reading->sizes[next.start] - reading->sizes[at];
            at = next.end + 1;
        }
    }
    return size;
}

/* Add the events of parts, cleaned; how much text that is, or -1. */
static Py_ssize_t
keep_cleaned(Reading *reading, const Ranges *parts, Ranges *kept)
{
    Py_ssize_t size = 0;
    for (Py_ssize_t at = 0; at < parts->count; at++) {
        if (!clean(reading, parts->ranges[at].start)) {
            return -1;
        }
    }
    if (reading->cuts.count) {
        qsort(reading->cuts.ranges, (size_t)reading->cuts.count, sizeof(Range), by_start);
    }
    for (Py_ssize_t at = 0; at < parts->count; at++) {
        Py_ssize_t more = keep(reading, &reading->blocks[parts->ranges[at].start], kept);
        if (more < 0) {
            return -1;
        }
        size += more;
    }
    return size;
}

/* The main text by these rules; how much it is, or -1. */
static Py_ssize_t
main_text(Reading *reading, Ranges *kept)
{
    Ranges parts = {0};
    vote(reading);
    Py_ssize_t size = !reading->failed && choose(reading, &parts) ? keep_cleaned(reading, &parts, kept) : -1;
    PyMem_RawFree(parts.ranges);
    return size;
}

static bool
says_article(Reading *reading)
{
    for (Py_ssize_t at = 0; at < reading->page->count && !reading->failed; at++) {
        const Event *event = &reading->page->events[at];
        if (event->tag != META || event->closes) {
            continue;
        }
        Slice raw = event_attributes(reading->page, event);
        if (slice_is(value_of(reading, raw, "property", &reading->one), "og:type") &&
            slice_is(value_of(reading, raw, "content", &reading->one), "article")) {
            return true;
        }
    }
    return false;
}

/* All that is no furniture in the part that calls itself the main one; the least of it to be content with, or -1. */
static double
whole(Reading *reading, Ranges *kept)
{
    const Block *part = &reading->blocks[declared(reading)];
    bool article = says_article(reading);
    if (reading->failed || keep(reading, part, kept) < 0) {
        return -1;
    }
    double plain = (article ? 0.3 : 0.7) * ((double)part->in.size - part->in.linked);
    double any = (article ? 0.1 : 0.2) * (double)part->in.size;
    return plain > any ? plain : any;
}

/* --- the page --------------------------------------------------------------------------------------------------- */

static bool
is_hidden(Reading *reading, Slice raw)
{
    Slice found, id = value_of(reading, raw, "id", &reading->one);
    if (id.n >= 2 && memcmp(id.p, "S:", 2) == 0) {
        return false;
    }
    int has = attribute(reading->page, raw, "hidden", &reading->one, &found);
    reading->failed = reading->failed || has < 0;
    return has > 0 || slice_is(value_of(reading, raw, "aria-hidden", &reading->one), "true") ||
           is_styled_away(value_of(reading, raw, "style", &reading->one));
}

static int
find_hidden(const Page *page, const Py_ssize_t *sizes, Ranges *hidden)
{
    Reading reading = {.page = page};
    Py_ssize_t next = 0;
    bool done = true;
    for (Py_ssize_t at = 0; done && at < page->count; at++) {
        const Event *event = &page->events[at];
        bool veiled = next < page->veils && page->veiled[next] == at;
        next += veiled;
        if (event->tag == TEXT || event->closes) {
            continue;
        }
        uint16_t known = event->tag < OTHERS ? tag_traits[event->tag] : 0;
        bool large = (double)(sizes[event->end] - sizes[at]) > MOST_HIDDEN * (double)sizes[page->count];
        bool doubted = !large && (known & DOUBTED || (veiled && is_hidden(&reading, event_attributes(page, event))));
        done = !reading.failed;
        if (done && (doubted || known & NEVER)) {
            done = add_range(hidden, at, event->end);
        }
    }
    buffer_free(&reading.one);
    return done;
}

static Py_ssize_t *
sum_sizes(const Page *page)
{
    Py_ssize_t *sizes = PyMem_RawMalloc(((size_t)page->count + 1) * sizeof(Py_ssize_t));
    if (sizes != NULL) {
        sizes[0] = 0;
        for (Py_ssize_t at = 0; at < page->count; at++) {
            const Event *event = &page->events[at];
            bool counts = event->tag == TEXT && !event->space;
            sizes[at + 1] = sizes[at] + (counts ? characters(event_text(page, event)) : 0);
        }
    }
    return sizes;
}

static void
free_reading(Reading *reading)
{
    PyMem_RawFree(reading->blocks);
    PyMem_RawFree(reading->cuts.ranges);
    buffer_free(&reading->one);
    buffer_free(&reading->other);
}

static const Rules STRICT_FIRST[] = {{true, true, true}, {false, true, true}, {false, false, true}, {false}};

/* Clean the whole as if it was the main text, unless most of it is in the boxes that are cut then. */
static bool
clean_whole(const Page *page, const Ranges *hidden, const Py_ssize_t *sizes, Ranges *all)
{
    Reading reading = {.page = page, .rules = STRICT_FIRST[0], .hidden = hidden->ranges, .sizes = sizes, .edges = true};
    reading.hidden_count = hidden->count;
    Ranges cleaned = {0};
    bool done = measure(&reading);
    if (done) {
        Range part = {declared(&reading), 0};
        Ranges parts = {.ranges = &part, .count = 1};
        Py_ssize_t size = reading.failed ? -1 : keep_cleaned(&reading, &parts, &cleaned);
        done = size >= 0;
        if (done && (double)size >= LEAST_CLEANED * (double)reading.blocks[part.start].in.size) {
            Ranges whole = *all;
            *all = cleaned;
            cleaned = whole;
        }
    }
    PyMem_RawFree(cleaned.ranges);
    free_reading(&reading);
    return done;
}

int
readable(const Page *page, Ranges *found)
{
    Ranges hidden = {0}, all = {0}, kept[4] = {{0}};
    Py_ssize_t *sizes = sum_sizes(page), read[4] = {0}, most = 0;
    double least = 0;
    bool edges = true; /* of a page that has more than its tags and roles call furniture */
    bool done = sizes != NULL && find_hidden(page, sizes, &hidden);
    for (int each = 0; done && each < 4 && most < ENOUGH; each++) {
        Reading reading = {.page = page, .rules = STRICT_FIRST[each], .hidden = hidden.ranges, .sizes = sizes};
        reading.hidden_count = hidden.count;
        reading.edges = edges;
        done = measure(&reading);
        if (done && !each) {
            edges = reading.blocks[0].in.size > 0 || reading.blocks[0].in.images > 0;
            least = whole(&reading, &all);
            done = least >= 0;
        }
        read[each] = done ? main_text(&reading, &kept[each]) : -1;
        done = read[each] >= 0;
        most = read[each] > most ? read[each] : most;
        free_reading(&reading);
    }
    int best = 0;
    while (done && (double)read[best] < LEAST_SHARE * (double)most) {
        best++;
    }
    bool takes_whole = done && (double)read[best] < least;
    done = done && (!takes_whole || clean_whole(page, &hidden, sizes, &all));
    if (done) {
        Ranges *chosen = takes_whole ? &all : &kept[best];
        *found = *chosen;
        *chosen = (Ranges){0};
    }
    for (int each = 0; each < 4; each++) {
        PyMem_RawFree(kept[each].ranges);
    }
    PyMem_RawFree(all.ranges);
    PyMem_RawFree(sizes);
    PyMem_RawFree(hidden.ranges);
    if (!done && !PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    return done;
}
