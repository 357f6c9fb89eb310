/* Places in a text, and what stands around them: windows_python.py again, in C. */
#include "_scan.h"

#define RADIUS 30

typedef struct {
    PyObject *object;
    int kind;
    const void *data;
    Py_ssize_t length;
} Text;

typedef struct {
    Py_ssize_t start, end;
} Span;

static inline Py_UCS4
letter(const Text *text, Py_ssize_t at)
{
    return PyUnicode_READ(text->kind, text->data, at);
}

static inline Py_ssize_t
least_of(Py_ssize_t one, Py_ssize_t other)
{
    return one < other ? one : other;
}

static inline Py_ssize_t
most_of(Py_ssize_t one, Py_ssize_t other)
{
    return one > other ? one : other;
}

/* Whether a thought ends at a character; before a digit a mark may be part of a number. Nothing is seen from `limit` on. */
static int
is_mark(const Text *text, Py_ssize_t at, Py_ssize_t limit)
{
    Py_UCS4 c = letter(text, at);
    if (c != '.' && c != ',' && c != ';' && c != '!' && c != '?') {
        return 0;
    }
    Py_UCS4 next = at + 1 < limit ? letter(text, at + 1) : ' ';
    return next < '0' || next > '9';
}

/* Where the thought begins and ends, if that is within reach. */
static Span
bounds_of(const Text *text, const Span *pivots, Py_ssize_t count, Span place)
{
    Span found = {0, text->length};
    for (Py_ssize_t at = place.start - 1; at >= most_of(0, place.start - RADIUS - 1); at--) {
        if (is_mark(text, at, text->length)) {
            found.start = at + 1;
            break;
        }
    }
    Py_ssize_t limit = least_of(place.end + RADIUS + 2, text->length);
    for (Py_ssize_t at = place.end; at < limit; at++) {
        if (is_mark(text, at, limit)) {
            found.end = at;
            break;
        }
    }
    for (Py_ssize_t each = 0; each < count; each++) {
        if (found.start < pivots[each].end && pivots[each].end <= place.start) {
            found.start = pivots[each].end;
        }
        else if (place.end <= pivots[each].start && pivots[each].start < found.end) {
            found.end = pivots[each].start;
        }
    }
    return found;
}

static PyObject *
window(const Text *text, const Span *pivots, Py_ssize_t count, Span place)
{
    Span bounds = bounds_of(text, pivots, count, place);
    Py_ssize_t first = most_of(bounds.start, place.start - RADIUS), last = least_of(bounds.end, place.end + RADIUS);
    if (first > bounds.start && letter(text, first - 1) != ' ') {
        while (first < place.start && letter(text, first) != ' ') {
            first++;
        }
    }
    if (last < bounds.end && letter(text, last) != ' ') {
        while (last > place.end && letter(text, last - 1) != ' ') {
            last--;
        }
    }
    while (first < last && Py_UNICODE_ISSPACE(letter(text, first))) {
        first++;
    }
    while (last > first && Py_UNICODE_ISSPACE(letter(text, last - 1))) {
        last--;
    }
    return PyUnicode_Substring(text->object, first, last);
}

/* The spans of a list or tuple of pairs, all of them within a text; NULL and an error if there is anything else. */
static Span *
read_spans(PyObject *given, const Text *text, Py_ssize_t *count)
{
    PyObject *pairs = PySequence_Fast(given, "expected a list of starts and ends");
    if (pairs == NULL) {
        return NULL;
    }
    *count = PySequence_Fast_GET_SIZE(pairs);
    Span *spans = PyMem_New(Span, (size_t)*count + 1);
    if (spans == NULL) {
        PyErr_NoMemory();
    }
    for (Py_ssize_t at = 0; spans != NULL && at < *count; at++) {
        PyObject *pair = PySequence_Fast_GET_ITEM(pairs, at);
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) {
            PyErr_SetString(PyExc_TypeError, "expected a start and an end");
        }
        else {
            spans[at].start = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 0));
            spans[at].end = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 1));
            if (!PyErr_Occurred()
                && (spans[at].start < 0 || spans[at].end < spans[at].start || spans[at].end > text->length)) {
                PyErr_SetString(PyExc_ValueError, "a place is not within the text");
            }
        }
        if (PyErr_Occurred()) {
            PyMem_Free(spans);
            spans = NULL;
        }
    }
    Py_DECREF(pairs);
    return spans;
}

PyObject *
scan_windows(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "expected a text, pivots in it, and places in it");
        return NULL;
    }
    if (!is_text(args[0])) {
        return NULL;
    }
    Text text = {args[0], (int)PyUnicode_KIND(args[0]), PyUnicode_DATA(args[0]), PyUnicode_GET_LENGTH(args[0])};
    Py_ssize_t pivot_count, place_count;
    Span *pivots = read_spans(args[1], &text, &pivot_count);
    Span *places = pivots == NULL ? NULL : read_spans(args[2], &text, &place_count);
    PyObject *list = places == NULL ? NULL : PyList_New(place_count);
    for (Py_ssize_t at = 0; list != NULL && at < place_count; at++) {
        PyObject *made = window(&text, pivots, pivot_count, places[at]);
        if (made == NULL) {
            Py_CLEAR(list);
        }
        else {
            PyList_SET_ITEM(list, at, made);
        }
    }
    PyMem_Free(places);
    PyMem_Free(pivots);
    return list;
}

PyObject *
scan_locate(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyLong_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "expected a text, a phrase, and from where on");
        return NULL;
    }
    const ScanState *state = state_of(module);
    if (state == NULL || !is_text(args[0]) || !is_text(args[1])) {
        return NULL;
    }
    Py_ssize_t at = PyLong_AsSsize_t(args[2]), length = PyUnicode_GET_LENGTH(args[0]);
    Py_ssize_t size = PyUnicode_GET_LENGTH(args[1]);
    if (at < 0 || size == 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "expected a place in the text, and a phrase that is not empty");
        }
        return NULL;
    }
    while ((at = PyUnicode_Find(args[0], args[1], at, length, 1)) >= 0) {
        int begins = at == 0 || is_edge(state, PyUnicode_READ_CHAR(args[0], at - 1));
        if (begins && (at + size == length || is_edge(state, PyUnicode_READ_CHAR(args[0], at + size)))) {
            return Py_BuildValue("(nn)", at, at + size);
        }
        at++;
    }
    return at == -2 ? NULL : Py_BuildValue("(ii)", -1, -1);
}
