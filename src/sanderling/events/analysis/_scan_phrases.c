/* Phrases among words: the second half of scan_python.py, in C. */
#include "_scan.h"

int
words_open(Words *words, PyObject *given)
{
    words->held = PySequence_Tuple(given);
    if (words->held == NULL) {
        return -1;
    }
    words->at = PySequence_Fast_ITEMS(words->held);
    words->count = PyTuple_GET_SIZE(words->held);
    for (Py_ssize_t at = 0; at < words->count; at++) {
        if (!is_text(words->at[at])) {
            Py_DECREF(words->held);
            return -1;
        }
    }
    return 0;
}

void
words_close(Words *words)
{
    Py_DECREF(words->held);
}

/* What stands for the words up to here, None if nothing does, and what may follow: new references, for whatever Python
   runs meanwhile, a dict that is looked into must not be freed. 1, 0 or -1, as above. */
static int
step(PyObject *following, PyObject *word, PyObject **value, PyObject **next)
{
    PyObject *node = PyDict_GetItemWithError(following, word);
    if (node == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    if (!PyTuple_CheckExact(node) || PyTuple_GET_SIZE(node) != 2 || !PyDict_CheckExact(PyTuple_GET_ITEM(node, 1))) {
        PyErr_SetString(PyExc_TypeError, "expected a value and a dict for each word");
        return -1;
    }
    *value = Py_NewRef(PyTuple_GET_ITEM(node, 0));
    *next = Py_NewRef(PyTuple_GET_ITEM(node, 1));
    return 1;
}

int
longest_at(PyObject *first, const Words *words, Py_ssize_t start, Found *found)
{
    PyObject *following = first, *held = NULL, *value, *next;
    int there = 1;
    found->value = NULL;
    for (Py_ssize_t at = start; at < words->count && PyDict_GET_SIZE(following) > 0; at++) {
        there = step(following, words->at[at], &value, &next);
        if (there <= 0) {
            break;
        }
        following = next;
        Py_XSETREF(held, next);
        if (value == Py_None) {
            Py_DECREF(value);
            continue;
        }
        Py_XSETREF(found->value, value);
        found->end = at + 1;
    }
    Py_XDECREF(held);
    if (there < 0) {
        Py_CLEAR(found->value);
        return -1;
    }
    return found->value != NULL;
}

static int
append_new(PyObject *list, PyObject *made)
{
    if (made == NULL) {
        return -1;
    }
    int done = PyList_Append(list, made);
    Py_DECREF(made);
    return done;
}

static int
add_longest(PyObject *list, PyObject *first, const Words *words)
{
    Found found;
    for (Py_ssize_t start = 0; start < words->count;) {
        int there = longest_at(first, words, start, &found);
        /* "N": the reference goes to the tuple. */
        if (there < 0 || (there && append_new(list, Py_BuildValue("(nnN)", start, found.end, found.value)) < 0)) {
            return -1;
        }
        start = there ? found.end : start + 1;
    }
    return 0;
}

/* All phrases that begin at a word. */
static int
add_those_at(PyObject *list, PyObject *first, const Words *words, Py_ssize_t start)
{
    PyObject *following = first, *held = NULL, *value, *next;
    int there = 1;
    for (Py_ssize_t at = start; at < words->count; at++) {
        there = step(following, words->at[at], &value, &next);
        if (there <= 0) {
            break;
        }
        following = next;
        Py_XSETREF(held, next);
        if (value == Py_None) {
            Py_DECREF(value);
        }
        else if (append_new(list, Py_BuildValue("(nN)", start, value)) < 0) {
            there = -1;
            break;
        }
    }
    Py_XDECREF(held);
    return there < 0 ? -1 : 0;
}

static int
add_every(PyObject *list, PyObject *first, const Words *words)
{
    for (Py_ssize_t start = 0; start < words->count; start++) {
        if (add_those_at(list, first, words, start) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *
listed(PyObject *const *args, Py_ssize_t count, int (*add)(PyObject *, PyObject *, const Words *))
{
    Words words;
    if (count != 2 || !PyDict_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "expected the first words of phrases, and words");
        return NULL;
    }
    if (words_open(&words, args[1]) < 0) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    if (list != NULL && add(list, args[0], &words) < 0) {
        Py_CLEAR(list);
    }
    words_close(&words);
    return list;
}

PyObject *
scan_longest(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    return listed(args, count, add_longest);
}

PyObject *
scan_every(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    return listed(args, count, add_every);
}
