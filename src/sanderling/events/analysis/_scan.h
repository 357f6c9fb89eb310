/* What the parts of `_scan` share. */
#ifndef SCAN_H
#define SCAN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Words, which must be exact strings in a list or a tuple: so that nothing but C runs while they are looked at. */
typedef struct {
    PyObject *held;
    PyObject **at;
    Py_ssize_t count;
} Words;

/* A phrase among words: what stands for it, borrowed, and the word behind its last. */
typedef struct {
    PyObject *value;
    Py_ssize_t end;
} Found;

/* Whether it is an exact string; if not, an error is set. */
int is_text(PyObject *given);

/* Whether a word may begin or end beside this character. */
int is_edge(Py_UCS4 c);

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
