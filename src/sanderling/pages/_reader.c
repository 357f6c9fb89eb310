/* Reads a page: its main text as Markdown, its title, where it leads, and what it says of itself.
 *
 * reader_python.py is the reference; the tests run both against each other. All memory is that of one call, and what is
 * asked of Python (rare character references, the URLs of links) may raise: then so does the call.
 *
 * Subinterpreters: each has a module and a State of its own, also one with a GIL of its own.
 * Free threading: nothing is shared, so no lock is needed; it was not tried, and is not promised.
 */
#include "_reader.h"


#define LONGEST_TITLE 500

typedef struct {
    PyObject *plain, *dereference;
} State;

/* The text of the element that opens at `at`, its words parted by single spaces. */
static PyObject *
text_of(const Page *page, Py_ssize_t at)
{
    Buffer text = {0};
    for (Py_ssize_t inside = at + 1; inside < page->events[at].end; inside++) {
        const Event *event = &page->events[inside];
        if (event->tag == TEXT) {
            Slice said = event->space ? (Slice){" ", 1} : event_text(page, event);
            buffer_add(&text, said.p, said.n);
        }
    }
    PyObject *made = text.failed ? PyErr_NoMemory() : PyUnicode_DecodeUTF8(text.n ? text.p : "", text.n, "strict");
    buffer_free(&text);
    PyObject *words = made == NULL ? NULL : PyUnicode_Split(made, NULL, -1), *space = PyUnicode_FromString(" ");
    PyObject *joined = words == NULL || space == NULL ? NULL : PyUnicode_Join(space, words);
    Py_XDECREF(made);
    Py_XDECREF(words);
    Py_XDECREF(space);
    return joined;
}

/* Where the first `tag` opens that is not inside an svg; -1 if there is none. */
static Py_ssize_t
first_outside(const Page *page, int tag)
{
    for (Py_ssize_t at = 0; at < page->count; at++) {
        const Event *event = &page->events[at];
        if (event->tag == SVG && !event->closes) {
            at = event->end;
        } else if (event->tag == tag && !event->closes) {
            return at;
        }
    }
    return -1;
}

/* What the title says, else the first heading. */
static PyObject *
find_title(const Page *page)
{
    static const int tags[] = {TITLE, H1};
    for (int each = 0; each < 2; each++) {
        Py_ssize_t at = first_outside(page, tags[each]);
        PyObject *text = at < 0 ? NULL : text_of(page, at);
        if (at >= 0 && (text == NULL || PyUnicode_GET_LENGTH(text))) {
            return text;
        }
        Py_XDECREF(text);
    }
    return PyUnicode_FromString("");
}

static PyObject *
string_of(Slice text)
{
    return PyUnicode_DecodeUTF8(text.p, text.n, "strict");
}

static int
append_pair(PyObject *list, int tag, Slice raw)
{
    PyObject *text = string_of(raw);
    PyObject *pair = text == NULL ? NULL : Py_BuildValue("(sN)", tag_names[tag], text);
    int done = pair != NULL && PyList_Append(list, pair) == 0;
    Py_XDECREF(pair);
    return done;
}

/* A link that the page does not ask us to leave alone: appended to `links`, with its rel if that tag is to be judged. */
static int
append_link(const Page *page, PyObject *links, const Event *event, Buffer *into)
{
    Slice raw = event_attributes(page, event), said = {"", 0}, rel = {"", 0};
    const char *name = event->tag == IFRAME || event->tag == FRAME ? "src" : "href";
    int found = attribute(page, raw, name, into, &said);
    if (found <= 0 || !said.n) {
        return found >= 0;
    }
    PyObject *href = string_of(said);
    if (href == NULL || attribute(page, raw, "rel", into, &rel) < 0) {
        Py_XDECREF(href);
        return 0;
    }
    PyObject *text = string_of(rel);
    PyObject *triple = text == NULL ? NULL : Py_BuildValue("(sNN)", tag_names[event->tag], href, text);
    if (text == NULL) {
        Py_DECREF(href);
    }
    int done = triple != NULL && PyList_Append(links, triple) == 0;
    Py_XDECREF(triple);
    return done;
}

/* What the page says of itself, and its links outside of templates, in order. */
static int
collect(const Page *page, PyObject *heads, PyObject *links)
{
    Buffer into = {0};
    Py_ssize_t until = -1; /* where a template ends */
    int done = 1;
    for (Py_ssize_t at = 0; done && at < page->count; at++) {
        const Event *event = &page->events[at];
        if (event->tag == TEXT || event->closes) {
            continue;
        }
        if (event->tag == TEMPLATE && at > until) {
            until = event->end;
        }
        bool head = event->tag == HTML || event->tag == BASE || event->tag == META || event->tag == LINK;
        if (head) {
            done = append_pair(heads, event->tag, event_attributes(page, event));
        }
        bool leads = event->tag == A || event->tag == AREA || event->tag == LINK || event->tag == IFRAME || event->tag == FRAME;
        if (done && leads && at > until) {
            done = append_link(page, links, event, &into);
        }
    }
    buffer_free(&into);
    return done;
}

static PyObject *
read_parsed(const Page *page, PyObject *resolver)
{
    PyObject *heads = PyList_New(0), *links = PyList_New(0), *title = NULL, *absolute = NULL, *text = NULL, *all = NULL;
    Ranges parts = {0};
    if (heads != NULL && links != NULL && collect(page, heads, links) && (title = find_title(page)) != NULL &&
        (absolute = PyObject_CallOneArg(resolver, heads)) != NULL && readable(page, &parts) &&
        (text = render(page, &parts, absolute)) != NULL) {
        all = PyTuple_Pack(5, text, title, heads, links, page->cut ? Py_True : Py_False);
    }
    PyMem_RawFree(parts.ranges);
    Py_XDECREF(heads);
    Py_XDECREF(links);
    Py_XDECREF(title);
    Py_XDECREF(absolute);
    Py_XDECREF(text);
    return all;
}

PyDoc_STRVAR(read_doc,
"read(html, resolver, most_tags=200000, /)\n--\n\n"
"Main text as Markdown, title, heads, links, and whether the page has more tags than are read.\n\n"
"`resolver` is called with the heads, (tag, attributes) of html, base, meta and link, and gives what makes a URL of a\n"
"link, or None. Links are (tag, where it leads, rel).");

static PyObject *
read_page(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    if (count < 2 || count > 3 || !PyUnicode_Check(given[0])) {
        PyErr_SetString(PyExc_TypeError, "read expects a page as text, a function, and how many tags to read");
        return NULL;
    }
    Py_ssize_t most_tags = count == 3 ? PyLong_AsSsize_t(given[2]) : MOST_TAGS;
    if (most_tags < 1) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "read expects to read at least one tag");
        }
        return NULL;
    }
    const State *state = PyModule_GetState(module);
    Page page = {.most_tags = most_tags, .plain = state->plain, .dereference = state->dereference};
    page.html.p = PyUnicode_AsUTF8AndSize(given[0], &page.html.n);
    if (page.html.p == NULL) {
        return NULL;
    }
    PyObject *all = parse_page(&page) ? read_parsed(&page, given[1]) : NULL;
    page_free(&page);
    return all;
}

static PyMethodDef METHODS[] = {
    {"read", (PyCFunction)(void (*)(void))read_page, METH_FASTCALL, read_doc},
    {NULL},
};

static int
execute(PyObject *module)
{
    State *state = PyModule_GetState(module);
    PyObject *markup = PyImport_ImportModule("sanderling.pages.markup");
    if (markup == NULL) {
        return -1;
    }
    state->plain = PyObject_GetAttrString(markup, "plain");
    state->dereference = PyObject_GetAttrString(markup, "dereference");
    Py_DECREF(markup);
    return state->plain == NULL || state->dereference == NULL ? -1 : 0;
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->plain);
    Py_VISIT(state->dereference);
    return 0;
}

static int
clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->plain);
    Py_CLEAR(state->dereference);
    return 0;
}

static void
release(void *module)
{
    clear(module);
}

static PyModuleDef_Slot SLOTS[] = {
    {Py_mod_exec, (void *)execute},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_reader",
    .m_size = sizeof(State),
    .m_methods = METHODS,
    .m_slots = SLOTS,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC
PyInit__reader(void)
{
    return PyModuleDef_Init(&MODULE);
}
