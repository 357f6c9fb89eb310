/* How much good and bad is in words: weigh_python.py again, in C. The numbers and the order of all sums are its. */
#include "_scan.h"

enum { END = -2, BREAK = -1, VALENCE = 0, SIGN = 1, NEGATION = 2, DEGREE = 3, PIVOT = 4, CONCESSION = 5 };

#define NEGATION_REACHES 4
#define DEGREE_REACHES 2
#define NOT_GOOD 0.7
#define NOT_BAD 0.5
#define BEFORE_PIVOT 0.35
#define AFTER_PIVOT 1.5
#define CONCEDED 0.5
#define ASKED 0.15
#define REPEATED 0.25
#define NOWHERE (-100)

typedef struct {
    double good, bad, clause_good, clause_bad, last_value, weight, degree;
    Py_ssize_t degree_until, negated_from, negated_until, last_end;
    const PyObject *last;
    int last_turned;
} Reading;

typedef struct {
    const PyObject *said; /* of one phrase, in all its spellings, the same; only compared, so nobody holds it */
    long kind;
    double value, after;
    Py_ssize_t start, end;
} Phrase;

static void
take_word(Reading *reading, const Phrase *phrase)
{
    double value = phrase->value * reading->weight;
    if (phrase->start <= reading->degree_until) {
        value *= reading->degree;
    }
    if (phrase->start == reading->last_end && phrase->said == reading->last) {
        value *= REPEATED;
    }
    reading->last_turned = phrase->start <= reading->negated_until && phrase->kind == VALENCE;
    if (reading->last_turned) {
        value *= value > 0 ? -NOT_GOOD : -NOT_BAD;
    }
    if (value > 0) {
        reading->clause_good += value;
    }
    else {
        reading->clause_bad -= value;
    }
    reading->last = phrase->said;
    reading->last_value = value;
    reading->last_end = phrase->end;
}

static void
change(Reading *reading, double factor)
{
    double more = reading->last_value * (factor - 1);
    reading->last_value += more;
    if (reading->last_value > 0) {
        reading->clause_good += more;
    }
    else {
        reading->clause_bad -= more;
    }
}

static void
negate(Reading *reading, const Phrase *phrase)
{
    if (phrase->start <= reading->negated_until && reading->last_end <= reading->negated_from) {
        reading->negated_until = NOWHERE;
    }
    else {
        reading->negated_from = phrase->start;
        reading->negated_until = phrase->end + NEGATION_REACHES - 1;
    }
}

static void
set_degree(Reading *reading, const Phrase *phrase)
{
    if (phrase->start > reading->negated_until) {
        int again = phrase->start <= reading->degree_until;
        reading->degree = again ? reading->degree * phrase->value : phrase->value;
        reading->degree_until = phrase->end + DEGREE_REACHES - 1;
    }
}

static void
close_clause(Reading *reading, double counts, double weight)
{
    reading->good += reading->clause_good * counts;
    reading->bad += reading->clause_bad * counts;
    reading->clause_good = reading->clause_bad = 0.0;
    reading->weight = weight;
    reading->negated_until = reading->degree_until = reading->last_end = NOWHERE;
}

static void
take_pause(Reading *reading)
{
    reading->negated_until = reading->degree_until = reading->last_end = NOWHERE;
    if (reading->weight == CONCEDED) {
        reading->weight = 1.0;
    }
}

/* `asked`: nothing follows that a negation could deny. */
static void
take_phrase(Reading *reading, const Phrase *phrase, int asked)
{
    if (phrase->kind == BREAK) {
        take_pause(reading);
    }
    else if (phrase->after != 0.0 && phrase->start == reading->last_end) {
        if (!reading->last_turned) {
            change(reading, phrase->after);
        }
        reading->last_end = phrase->end;
    }
    else if (phrase->kind == END) {
        close_clause(reading, 1.0, 1.0);
    }
    else if (phrase->kind == VALENCE || phrase->kind == SIGN) {
        take_word(reading, phrase);
    }
    else if (phrase->kind == DEGREE) {
        set_degree(reading, phrase);
    }
    else if (phrase->kind == NEGATION && !asked) {
        negate(reading, phrase);
    }
    else if (phrase->kind == NEGATION) {
        if (phrase->start - reading->last_end <= 1) {
            change(reading, ASKED);
        }
    }
    else if (phrase->kind == PIVOT) {
        close_clause(reading, BEFORE_PIVOT, AFTER_PIVOT);
    }
    else if (phrase->kind == CONCESSION) {
        reading->weight = CONCEDED;
    }
}

static int
read_phrase(Phrase *phrase, const Found *found, Py_ssize_t start)
{
    PyObject *said = found->value;
    if (!PyTuple_CheckExact(said) || PyTuple_GET_SIZE(said) != 3) {
        PyErr_SetString(PyExc_TypeError, "expected kind, value and after for each phrase");
        return -1;
    }
    phrase->said = said;
    phrase->start = start;
    phrase->end = found->end;
    /* One after the other: what is no number may run Python, which must not find an error that is set already. */
    phrase->kind = PyLong_AsLong(PyTuple_GET_ITEM(said, 0));
    if (phrase->kind == -1 && PyErr_Occurred()) {
        return -1;
    }
    phrase->value = PyFloat_AsDouble(PyTuple_GET_ITEM(said, 1));
    if (phrase->value == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    phrase->after = PyFloat_AsDouble(PyTuple_GET_ITEM(said, 2));
    return phrase->after == -1.0 && PyErr_Occurred() ? -1 : 0;
}

static int
is_loud(PyObject *word)
{
    return PyUnicode_GET_LENGTH(word) == 1 && PyUnicode_READ_CHAR(word, 0) == '!';
}

/* Whether nothing follows that a negation could deny; -1 if an error is set. */
static int
is_asked(PyObject *asking, const Words *words, const Phrase *phrase)
{
    return phrase->kind != NEGATION || phrase->end >= words->count ? 1 : PySet_Contains(asking, words->at[phrase->end]);
}

/* Read the phrase that was found at a word, and release it; the word behind it, or -1 if an error is set. */
static Py_ssize_t
take_found(Reading *reading, const Found *found, PyObject *asking, const Words *words, Py_ssize_t start)
{
    Phrase phrase;
    int asked = read_phrase(&phrase, found, start) < 0 ? -1 : is_asked(asking, words, &phrase);
    Py_DECREF(found->value);
    if (asked < 0) {
        return -1;
    }
    take_phrase(reading, &phrase, asked);
    return phrase.end;
}

static PyObject *
weighed(PyObject *first, PyObject *asking, const Words *words)
{
    Reading reading = {.weight = 1.0, .degree = 1.0};
    reading.degree_until = reading.negated_from = reading.negated_until = reading.last_end = NOWHERE;
    Py_ssize_t loud = 0;
    for (Py_ssize_t start = 0; start < words->count;) {
        Found found;
        int there = longest_at(first, words, start, &found);
        Py_ssize_t end = there <= 0 ? start + 1 : take_found(&reading, &found, asking, words, start);
        if (there < 0 || end < 0) {
            return NULL;
        }
        for (; start < end; start++) {
            loud += is_loud(words->at[start]);
        }
    }
    return Py_BuildValue("(ddn)", reading.good + reading.clause_good, reading.bad + reading.clause_bad, loud);
}

PyObject *
scan_weigh(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Words words;
    if (count != 3 || !PyDict_CheckExact(args[0]) || !PyFrozenSet_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "expected the first words of phrases, words that ask, and words");
        return NULL;
    }
    if (words_open(&words, args[2]) < 0) {
        return NULL;
    }
    PyObject *sums = weighed(args[0], args[1], &words);
    words_close(&words);
    return sums;
}
