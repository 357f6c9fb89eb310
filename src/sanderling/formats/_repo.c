/* parse_repo for Python: the parser in _repo_parse.c, with the GIL released, and its result as Python objects.

   Subinterpreters: each has a module and a State of its own, also one with a GIL of its own. The parser has no state.
   Free threading: not promised, since it was not tried. A Python without a GIL turns it on for this module. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_repo.h"

#include <math.h>
#include <string.h>

/* What one interpreter has. */
typedef struct {
    /* From sanderling.formats.parsed. */
    PyObject *collection, *stats, *repo, *error, *limits, *default_limits;
    PyObject *kinds[REPO_KINDS];
    uint64_t hash_key[2];
    const RepoSha256 *sha256;
} State;

/* That of a module; NULL and an error if the module was not executed, or if that failed. */
static State *
state_of(PyObject *module)
{
    State *state = PyModule_GetState(module);
    if (state == NULL || state->default_limits == NULL) {
        PyErr_SetString(PyExc_SystemError, "_repo was not executed");
        return NULL;
    }
    return state;
}

/* --- Arguments ----------------------------------------------------------------------------------------------------- */

/* One of the limits. A number that does not fit is as good as none. */
static int
get_limit(PyObject *limits, const char *name, uint64_t *limit)
{
    PyObject *value = PyObject_GetAttrString(limits, name);
    if (value == NULL) {
        return -1;
    }
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    Py_DECREF(value);
    if (number == -1 && PyErr_Occurred()) {
        return -1;
    }
    *limit = overflow > 0 ? INT64_MAX : number < 0 ? 0 : (uint64_t)number;
    return 0;
}

static int
get_limits(const State *state, PyObject *limits, RepoOptions *options)
{
    const int known = PyObject_IsInstance(limits, state->limits);
    if (known == 0) {
        PyErr_Format(PyExc_TypeError, "limits is a %s, expected Limits", Py_TYPE(limits)->tp_name);
    }
    uint64_t nesting;
    if (known <= 0 || get_limit(limits, "car", &options->car) < 0 || get_limit(limits, "block", &options->block) < 0
        || get_limit(limits, "blocks", &options->blocks) < 0 || get_limit(limits, "depth", &options->depth) < 0
        || get_limit(limits, "output", &options->output) < 0 || get_limit(limits, "nesting", &nesting) < 0) {
        return -1;
    }
    /* Limits sees to it; but the levels of a record have their place on the stack. */
    options->nesting = nesting > REPO_MOST_NESTING ? REPO_MOST_NESTING : (unsigned)nesting;
    return 0;
}

static int
get_strip(PyObject *cids, bool *strip)
{
    const bool text = cids != NULL && PyUnicode_Check(cids);
    *strip = cids == NULL || (text && PyUnicode_CompareWithASCIIString(cids, "strip") == 0);
    if (!*strip && !(text && PyUnicode_CompareWithASCIIString(cids, "keep") == 0)) {
        PyErr_Format(PyExc_ValueError, "cids is %R, expected 'strip' or 'keep'", cids);
        return -1;
    }
    return 0;
}

/* --- Results ------------------------------------------------------------------------------------------------------- */

static PyObject *
make_collection(const State *state, const RepoResult *result, const RepoCollection *collection)
{
    return PyObject_CallFunction(
        state->collection, "s#ny#", (const char *)result->names.data + collection->name,
        (Py_ssize_t)collection->name_size, (Py_ssize_t)collection->count,
        (const char *)result->data.data + collection->data, (Py_ssize_t)collection->data_size);
}

static PyObject *
make_repo(const State *state, const RepoResult *result)
{
    const size_t count = result->collections.count;
    PyObject *collections = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; collections != NULL && i < count; i++) {
        PyObject *collection = make_collection(state, result, (const RepoCollection *)result->collections.data + i);
        if (collection == NULL) {
            Py_CLEAR(collections);
            break;
        }
        PyTuple_SET_ITEM(collections, (Py_ssize_t)i, collection);
    }
    if (collections == NULL) {
        return NULL;
    }
    PyObject *stats = PyObject_CallFunction(
        state->stats, "KKKKKKK", (unsigned long long)result->blocks, (unsigned long long)result->records,
        (unsigned long long)result->json_bytes, (unsigned long long)result->missing,
        (unsigned long long)result->bad_records, (unsigned long long)result->bad_keys,
        (unsigned long long)result->floats);
    if (stats == NULL) {
        Py_DECREF(collections);
        return NULL;
    }
    return PyObject_CallFunction(
        state->repo, "s#s#INN", result->did, (Py_ssize_t)result->did_size, result->rev, (Py_ssize_t)result->rev_size,
        result->version, collections, stats);
}

static PyObject *
raise_fault(const State *state, const RepoResult *result)
{
    if (result->kind == REPO_NO_MEMORY) {
        return PyErr_NoMemory();
    }
    PyObject *error = PyObject_CallFunction(
        state->error, "Ons", state->kinds[result->kind], (Py_ssize_t)result->offset, result->found);
    if (error != NULL) {
        PyErr_SetObject(state->error, error);
        Py_DECREF(error);
    }
    return NULL;
}

PyDoc_STRVAR(parse_repo_doc,
"parse_repo(car, *, verify=True, cids='strip', limits=...)\n--\n\n"
"The records of the repo in `car`, any contiguous buffer. Raises RepoError.\n\n"
"`verify` checks the hash of every block. `cids` says whether map entries called `cid` are stripped from the JSON.\n"
"Whether the repo is the one that was asked for is the caller's to check, by `did`. Other threads run meanwhile.");

static PyObject *
parse_repo(PyObject *module, PyObject *args, PyObject *keywords)
{
    const State *state = state_of(module);
    if (state == NULL) {
        return NULL;
    }
    static char *names[] = {"car", "verify", "cids", "limits", NULL};
    Py_buffer car;
    int verify = 1;
    PyObject *cids = NULL, *limits = state->default_limits;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "y*|$pOO:parse_repo", names, &car, &verify, &cids, &limits)) {
        return NULL;
    }
    RepoOptions options = {.verify = verify, .sha256 = state->sha256};
    memcpy(options.key, state->hash_key, sizeof(options.key));
    if (get_strip(cids, &options.strip) < 0 || get_limits(state, limits, &options) < 0) {
        PyBuffer_Release(&car);
        return NULL;
    }
    RepoResult result;
    Py_BEGIN_ALLOW_THREADS
    repo_parse(car.buf, (size_t)car.len, &options, &result);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&car);
    PyObject *repo = result.kind == REPO_OK ? make_repo(state, &result) : raise_fault(state, &result);
    repo_release(&result);
    return repo;
}

/* --- For the tests -------------------------------------------------------------------------------------------------- */

static PyObject *
sha256(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    const char *name;
    if (!PyArg_ParseTuple(args, "y*s:sha256", &data, &name)) {
        return NULL;
    }
    PyObject *result = NULL;
    for (size_t i = 0; i < repo_sha256_count && result == NULL; i++) {
        const RepoSha256 *one = &repo_sha256_all[i];
        if (strcmp(one->name, name) == 0 && one->available()) {
            uint8_t digest[32];
            repo_sha256(one, data.buf, (size_t)data.len, digest);
            result = PyBytes_FromStringAndSize((const char *)digest, sizeof(digest));
        }
    }
    PyBuffer_Release(&data);
    if (result == NULL && !PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "no implementation %s here, expected one of IMPLEMENTATIONS", name);
    }
    return result;
}

static PyObject *
float_text(PyObject *Py_UNUSED(module), PyObject *value)
{
    const double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) {
        return NULL;
    }
    if (!isfinite(number)) {
        return PyErr_Format(PyExc_ValueError, "%R has no text in JSON, expected a finite float", value);
    }
    char text[REPO_LONGEST_FLOAT];
    return PyUnicode_DecodeASCII(text, (Py_ssize_t)repo_float(number, text), NULL);
}

static PyMethodDef methods[] = {
    {"parse_repo", (PyCFunction)(void (*)(void))parse_repo, METH_VARARGS | METH_KEYWORDS, parse_repo_doc},
    {"sha256", sha256, METH_VARARGS, "The hash of some bytes by one of IMPLEMENTATIONS."},
    {"float_text", float_text, METH_O, "A finite float as it is written in JSON."},
    {NULL, NULL, 0, NULL},
};

/* --- The module ----------------------------------------------------------------------------------------------------- */

static int
import_types(State *state)
{
    PyObject *parsed = PyImport_ImportModule("sanderling.formats.parsed");
    if (parsed == NULL) {
        return -1;
    }
    const struct {
        PyObject **type;
        const char *name;
    } types[] = {
        {&state->collection, "Collection"}, {&state->stats, "Stats"}, {&state->repo, "Repo"},
        {&state->error, "RepoError"}, {&state->limits, "Limits"},
    };
    int done = 0;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && done == 0; i++) {
        *types[i].type = PyObject_GetAttrString(parsed, types[i].name);
        done = *types[i].type == NULL ? -1 : 0;
    }
    for (int i = 0; i < REPO_KINDS && done == 0; i++) {
        state->kinds[i] = PyObject_CallMethod(parsed, "Kind", "s", repo_kind_names[i]);
        done = state->kinds[i] == NULL ? -1 : 0;
    }
    Py_DECREF(parsed);
    if (done == 0) {
        state->default_limits = PyObject_CallNoArgs(state->limits);
    }
    return state->default_limits == NULL ? -1 : 0;
}

static int
make_hash_key(State *state)
{
    PyObject *os = PyImport_ImportModule("os");
    PyObject *random = os == NULL ? NULL : PyObject_CallMethod(os, "urandom", "i", (int)sizeof(state->hash_key));
    Py_XDECREF(os);
    if (random == NULL) {
        return -1;
    }
    const bool enough = PyBytes_Check(random) && PyBytes_GET_SIZE(random) == sizeof(state->hash_key);
    if (enough) {
        memcpy(state->hash_key, PyBytes_AS_STRING(random), sizeof(state->hash_key));
    }
    else { /* somebody has put another in its place */
        PyErr_Format(PyExc_TypeError, "os.urandom gave %R, expected %zu bytes", random, sizeof(state->hash_key));
    }
    Py_DECREF(random);
    return enough ? 0 : -1;
}

static int
add_implementations(PyObject *module, const RepoSha256 *fastest)
{
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names != NULL && i < repo_sha256_count; i++) {
        PyObject *name = PyUnicode_FromString(repo_sha256_all[i].name);
        if (name == NULL || (repo_sha256_all[i].available() && PyList_Append(names, name) < 0)) {
            Py_CLEAR(names);
        }
        Py_XDECREF(name);
    }
    PyObject *tuple = names == NULL ? NULL : PyList_AsTuple(names);
    Py_XDECREF(names);
    const int done = tuple == NULL ? -1 : PyModule_AddObjectRef(module, "IMPLEMENTATIONS", tuple);
    Py_XDECREF(tuple);
    return done < 0 ? -1 : PyModule_AddStringConstant(module, "IMPLEMENTATION", fastest->name);
}

static int
start(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->sha256 = repo_sha256_fastest();
    const bool done = make_hash_key(state) == 0 && import_types(state) == 0;
    return done ? add_implementations(module, state->sha256) : -1;
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->collection);
    Py_VISIT(state->stats);
    Py_VISIT(state->repo);
    Py_VISIT(state->error);
    Py_VISIT(state->limits);
    Py_VISIT(state->default_limits);
    for (int i = 0; i < REPO_KINDS; i++) {
        Py_VISIT(state->kinds[i]);
    }
    return 0;
}

static int
clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->collection);
    Py_CLEAR(state->stats);
    Py_CLEAR(state->repo);
    Py_CLEAR(state->error);
    Py_CLEAR(state->limits);
    Py_CLEAR(state->default_limits);
    for (int i = 0; i < REPO_KINDS; i++) {
        Py_CLEAR(state->kinds[i]);
    }
    return 0;
}

static void
release(void *module)
{
    clear(module);
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
    .m_name = "_repo",
    .m_doc = "The parser of repos, in C.",
    .m_size = sizeof(State),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC
PyInit__repo(void)
{
    return PyModuleDef_Init(&definition);
}
