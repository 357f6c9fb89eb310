/* Words of a text: the first half of scan_python.py again, in C; and the module.
 *
 * `scan_python.py` is the reference; the tests run both against each other. Every text is looked at once from its
 * beginning to its end, a phrase word by word; nothing recurses, and the only memory taken is that of what is returned,
 * and of some words that are kept.
 *
 * Subinterpreters: each has a module and a ScanState of its own, also one with a GIL of its own.
 * Free threading: not promised. The kept words have no lock, so a Python without a GIL turns it on for this module.
 */
#include "_scan.h"

/* What a character is to the words around it. A gap is a space, or a mark that is like one. */
enum { LETTER, GAP, WHITE, BREAK, APOSTROPHE };
#define PLAIN 0x80 /* also one of those that `plain_words` is for */
#define KIND 0x0f

static void
make_latin(unsigned char latin[256])
{
    static const unsigned char gaps[] = " \"/~*_+=|<>{}@&%$^`\\[]#-\xab\xbb", breaks[] = ".,;:!?()";
    static const unsigned char plain[] = " .,;:!?";
    for (unsigned int c = 0; c < 256; c++) {
        latin[c] = Py_UNICODE_ISSPACE((Py_UCS4)c) ? WHITE : LETTER;
        int letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (letter || (c >= 0xc0 && c != 0xd7 && c != 0xf7)) {
            latin[c] |= PLAIN;
        }
    }
    for (const unsigned char *each = gaps; *each; each++) {
        latin[*each] = GAP;
    }
    for (const unsigned char *each = breaks; *each; each++) {
        latin[*each] = BREAK;
    }
    for (const unsigned char *each = plain; *each; each++) {
        latin[*each] |= PLAIN;
    }
    latin['\''] = APOSTROPHE;
}

static inline int
kind_of(const ScanState *state, Py_UCS4 c)
{
    if (c < 256) {
        return state->latin[c] & KIND;
    }
    switch (c) {
    case 0x201c: case 0x201d: case 0x2018: case 0x2013: case 0x2014: case 0x2022:
    case 0x3001: case 0x3002: case 0x300c: case 0x300d:
        return GAP;
    default:
        return Py_UNICODE_ISSPACE(c) ? WHITE : LETTER;
    }
}

int
is_edge(const ScanState *state, Py_UCS4 c)
{
    int kind = kind_of(state, c);
    return kind == GAP || kind == BREAK || kind == APOSTROPHE;
}

static inline int
is_plain(const ScanState *state, Py_UCS4 c)
{
    if (c < 256) {
        return state->latin[c] & PLAIN;
    }
    switch (c) {
    case 0x0102: case 0x0103: case 0x0110: case 0x0111: case 0x0128: case 0x0129: case 0x0168: case 0x0169:
    case 0x01a0: case 0x01a1: case 0x01af: case 0x01b0:
        return 1;
    default:
        return c >= 0x1ea0 && c <= 0x1ef9;
    }
}

/* --- words ------------------------------------------------------------------------------------------------------ */

/* Words of before: people use the same ones, and to find one again takes a fifth of making it. Each has one place, which
 * it takes from whichever had it; so they are never more than that, and a word of that place is compared in full. */
#define LONGEST_KEPT 24

static int
is_same(PyObject *word, PyObject *text, Py_ssize_t start, Py_ssize_t length)
{
    if (word == NULL || PyUnicode_GET_LENGTH(word) != length) {
        return 0;
    }
    int kind = (int)PyUnicode_KIND(text), own = (int)PyUnicode_KIND(word);
    const void *data = PyUnicode_DATA(text), *letters = PyUnicode_DATA(word);
    for (Py_ssize_t at = 0; at < length; at++) {
        if (PyUnicode_READ(kind, data, start + at) != PyUnicode_READ(own, letters, at)) {
            return 0;
        }
    }
    return 1;
}

/* A new reference to text[start:end]. */
static PyObject *
word_at(ScanState *state, PyObject *text, Py_ssize_t start, Py_ssize_t end)
{
    Py_ssize_t length = end - start;
    if (length > LONGEST_KEPT) {
        return PyUnicode_Substring(text, start, end);
    }
    int kind = (int)PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    uint32_t hash = 2166136261u;
    for (Py_ssize_t at = start; at < end; at++) {
        hash = (hash ^ (uint32_t)PyUnicode_READ(kind, data, at)) * 16777619u;
    }
    PyObject **place = &state->kept[(hash ^ (hash >> 15)) % KEPT];
    if (is_same(*place, text, start, length)) {
        Py_INCREF(*place);
        return *place;
    }
    PyObject *word = PyUnicode_Substring(text, start, end);
    if (word != NULL) {
        Py_INCREF(word);
        Py_XSETREF(*place, word);
    }
    return word;
}

static int
add_word(ScanState *state, PyObject *list, PyObject *text, Py_ssize_t start, Py_ssize_t end)
{
    PyObject *word = word_at(state, text, start, end);
    if (word == NULL) {
        return -1;
    }
    int done = PyList_Append(list, word);
    Py_DECREF(word);
    return done;
}

static inline int
is_gap(const ScanState *state, int kind, const void *data, Py_ssize_t at, Py_ssize_t length)
{
    return at < 0 || at >= length || kind_of(state, PyUnicode_READ(kind, data, at)) == GAP;
}

/* The words and breaks of text[first:last]. */
static PyObject *
cut(ScanState *state, PyObject *text, Py_ssize_t first, Py_ssize_t last)
{
    PyObject *list = PyList_New(0);
    if (list == NULL) {
        return NULL;
    }
    int kind = (int)PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t start = -1;
    for (Py_ssize_t at = first; at < last; at++) {
        int what = kind_of(state, PyUnicode_READ(kind, data, at));
        if (what == APOSTROPHE && !is_gap(state, kind, data, at - 1, last)
            && !is_gap(state, kind, data, at + 1, last)) {
            what = LETTER;
        }
        if (what == LETTER) {
            start = start < 0 ? at : start;
            continue;
        }
        if (start >= 0 && add_word(state, list, text, start, at) < 0) {
            goto failed;
        }
        start = -1;
        if (what == BREAK && add_word(state, list, text, at, at + 1) < 0) {
            goto failed;
        }
    }
    if (start >= 0 && add_word(state, list, text, start, last) < 0) {
        goto failed;
    }
    return list;
failed:
    Py_DECREF(list);
    return NULL;
}

ScanState *
state_of(PyObject *module)
{
    ScanState *state = PyModule_GetState(module);
    if (state == NULL) {
        PyErr_SetString(PyExc_SystemError, "_scan was not executed");
    }
    return state;
}

int
is_text(PyObject *given)
{
    if (!PyUnicode_CheckExact(given)) {
        PyErr_Format(PyExc_TypeError, "expected a str, found %.80s", Py_TYPE(given)->tp_name);
        return 0;
    }
#if PY_VERSION_HEX < 0x030c0000
    return PyUnicode_READY(given) == 0;
#else
    return 1;
#endif
}

static PyObject *
scan_words_of(PyObject *module, PyObject *text)
{
    ScanState *state = state_of(module);
    return state != NULL && is_text(text) ? cut(state, text, 0, PyUnicode_GET_LENGTH(text)) : NULL;
}

/* Whether there are only plain letters, spaces one at a time, no dots in a row, and no "www.". */
static int
is_plain_text(const ScanState *state, PyObject *text)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    int kind = (int)PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_UCS4 before = 0;
    int in_row = 0; /* letters w, one after the other */
    for (Py_ssize_t at = 0; at < length; at++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, at);
        if (!is_plain(state, c) || (c == before && (c == ' ' || c == '.')) || (c == '.' && in_row >= 3)) {
            return 0;
        }
        in_row = c == 'w' || c == 'W' ? (in_row < 3 ? in_row + 1 : 3) : 0;
        before = c;
    }
    return 1;
}

static PyObject *
scan_plain_words(PyObject *module, PyObject *raw)
{
    ScanState *state = state_of(module);
    if (state == NULL || !is_text(raw)) {
        return NULL;
    }
    if (!is_plain_text(state, raw)) {
        Py_RETURN_NONE;
    }
    PyObject *lower = PyObject_CallMethod(raw, "lower", NULL);
    if (lower == NULL) {
        return NULL;
    }
    /* Of what is space to Python only spaces are plain, and these come one at a time. */
    Py_ssize_t first = 0, last = PyUnicode_GET_LENGTH(lower);
    first += last > first && PyUnicode_READ_CHAR(lower, first) == ' ';
    last -= last > first && PyUnicode_READ_CHAR(lower, last - 1) == ' ';
    PyObject *words = cut(state, lower, first, last);
    PyObject *text = words == NULL ? NULL : PyUnicode_Substring(lower, first, last);
    Py_DECREF(lower);
    if (text == NULL) {
        Py_XDECREF(words);
        return NULL;
    }
    return Py_BuildValue("(NN)", text, words);
}

static PyObject *
scan_has_triple(PyObject *Py_UNUSED(module), PyObject *text)
{
    if (!is_text(text)) {
        return NULL;
    }
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    int kind = (int)PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_UCS4 before = 0;
    int same = 0;
    for (Py_ssize_t at = 0; at < length; at++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, at);
        same = at > 0 && c == before && c != '\n' ? same + 1 : 0;
        if (same == 2) {
            Py_RETURN_TRUE;
        }
        before = c;
    }
    Py_RETURN_FALSE;
}

static PyMethodDef methods[] = {
    {"words_of", scan_words_of, METH_O, "The words and breaks of a text in small letters."},
    {"plain_words", scan_plain_words, METH_O, "A plain text in small letters and its words; None if it is not plain."},
    {"has_triple", scan_has_triple, METH_O, "Whether any character stands three times in a row."},
    {"longest", (PyCFunction)(void (*)(void))scan_longest, METH_FASTCALL, "The longest phrase at each word."},
    {"every", (PyCFunction)(void (*)(void))scan_every, METH_FASTCALL, "Every phrase, also those within others."},
    {"weigh", (PyCFunction)(void (*)(void))scan_weigh, METH_FASTCALL, "How much good, bad and loud is in words."},
    {"locate", (PyCFunction)(void (*)(void))scan_locate, METH_FASTCALL, "Where a phrase stands as whole words."},
    {"windows", (PyCFunction)(void (*)(void))scan_windows, METH_FASTCALL, "What stands around places of a text."},
    {NULL, NULL, 0, NULL},
};

static int
start(PyObject *module)
{
    ScanState *state = state_of(module);
    if (state == NULL) {
        return -1;
    }
    make_latin(state->latin);
    return 0;
}

/* Strings refer to nothing, so the collector need not be told of those that are kept. */
static void
release(void *module)
{
    ScanState *state = PyModule_GetState(module);
    for (int i = 0; i < KEPT; i++) {
        Py_CLEAR(state->kept[i]);
    }
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, start},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030d0000
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_scan",
    .m_doc = "scan_python.py, weigh_python.py and windows_python.py, in C.",
    .m_size = sizeof(ScanState),
    .m_methods = methods,
    .m_slots = slots,
    .m_free = release,
};

PyMODINIT_FUNC
PyInit__scan(void)
{
    return PyModuleDef_Init(&definition);
}
