/* What the parts of `_scan` share. */
#ifndef SCAN_H
#define SCAN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* What one interpreter has. Nothing else is kept between calls, and nothing at all is shared with another interpreter. */
enum { KEPT = 8192 };
typedef struct {
    unsigned char latin[256]; /* the first characters: what they are to the words around them */
    PyObject *kept[KEPT];     /* words of before, or NULL */
} ScanState;

/* Words, which must be exact strings, in a tuple that nobody can change: the keys of a tree may be objects whose __eq__
   runs Python, which may change the list that was given. */
typedef struct {
    PyObject *held;
    PyObject **at;
    Py_ssize_t count;
} Words;

/* A phrase among words: what stands for it, a reference to be released, and the word behind its last. */
typedef struct {
    PyObject *value;
    Py_ssize_t end;
} Found;

/* That of a module; NULL and an error if the module was made and not executed. */
ScanState *state_of(PyObject *module);

/* Whether it is an exact string; if not, an error is set. */
int is_text(PyObject *given);

/* Whether a word may begin or end beside this character. */
int is_edge(const ScanState *state, Py_UCS4 c);

int words_open(Words *words, PyObject *given);
void words_close(Words *words);

/* The longest phrase at a word. 1: there is one, 0: there is none, -1: an error is set. */
int longest_at(PyObject *first, const Words *words, Py_ssize_t start, Found *found);

PyObject *scan_longest(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *scan_every(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *scan_weigh(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *scan_locate(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *scan_windows(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
