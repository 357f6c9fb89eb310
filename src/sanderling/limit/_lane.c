/* The fast path of the limiter: lane.py again, in C.
 *
 * Everything a request touches when nothing is in its way: find the host's lane, see that it is due, book it, hand out a
 * permit; later, count its success. Whatever is not plain is passed on to Python. `lane.py` is the reference; the tests
 * run both against each other.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#define KEPT 64      /* as in lane.py */
#define FIRST 16     /* samples there is room for at first; most hosts of a wide crawl never need more */
#define SMOOTHING 0.2

static PyObject *name_acquire_slow, *name_try_slow, *name_feedback_slow, *name_close_window, *name_give_back;
static PyObject *name_host, *name_sent, *name_throw, *name_close;
static PyObject *name_status, *name_latency, *name_error, *name_retry_after, *name_quota;
static PyObject *no_permits; /* the empty tuple */

/* --- Lane ------------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    double ready, interval, slack, opened, closes, mean;
    long long serial, ended, delivered, epoch, generation, sent_before, delivered_before;
    unsigned int failed, fresh;
    float *ring;
    unsigned char kept, next; /* samples in the ring, and where the oldest is once it is full */
    char plain, calm;
} Lane;

static void
lane_open(Lane *lane, double now, double length)
{
    lane->opened = now;
    lane->closes = now + length;
    lane->sent_before = lane->serial;
    lane->delivered_before = lane->delivered;
    lane->failed = lane->fresh = 0;
}

static long long
lane_book(Lane *lane, double now, double cost)
{
    double earliest = now - lane->slack;
    lane->ready = (lane->ready > earliest ? lane->ready : earliest) + lane->interval * cost;
    return ++lane->serial;
}

static int
lane_count(Lane *lane, double latency)
{
    if (lane->kept < KEPT && (lane->ring == NULL || lane->kept == FIRST)) {
        size_t room = lane->ring == NULL ? FIRST : KEPT;
        float *ring = PyMem_Realloc(lane->ring, room * sizeof(float));
        if (ring == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        lane->ring = ring;
    }
    lane->delivered++;
    lane->fresh++;
    lane->mean = lane->mean != 0.0 ? lane->mean + SMOOTHING * (latency - lane->mean) : latency;
    if (lane->kept < KEPT) {
        lane->ring[lane->kept++] = (float)latency;
    }
    else {
        lane->ring[lane->next] = (float)latency;
        lane->next = (lane->next + 1) % KEPT;
    }
    return 0;
}

static int
lane_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"ready", "interval", "slack", NULL};
    Lane *lane = (Lane *)self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ddd", names, &lane->ready, &lane->interval, &lane->slack)) {
        return -1;
    }
    lane->plain = 1;
    lane_open(lane, lane->ready, 0.0);
    return 0;
}

static void
lane_dealloc(PyObject *self)
{
    PyMem_Free(((Lane *)self)->ring);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
lane_take(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1 || count > 2) {
        PyErr_Format(PyExc_TypeError, "take() takes a time and a cost, got %zd arguments", count);
        return NULL;
    }
    double now = PyFloat_AsDouble(args[0]), cost = count == 2 ? PyFloat_AsDouble(args[1]) : 1.0;
    if (PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromLongLong(lane_book((Lane *)self, now, cost));
}

static PyObject *
lane_open_window(PyObject *self, PyObject *args)
{
    double now, length;
    if (!PyArg_ParseTuple(args, "dd", &now, &length)) {
        return NULL;
    }
    lane_open((Lane *)self, now, length);
    Py_RETURN_NONE;
}

static PyObject *
lane_sample(PyObject *self, PyObject *argument)
{
    double latency = PyFloat_AsDouble(argument);
    if (PyErr_Occurred() || lane_count((Lane *)self, latency) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static int
by_size(const void *left, const void *right)
{
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

/* The latest `count` samples of the ring, in order of size. */
static PyObject *
lane_sorted(Lane *lane, unsigned int count)
{
    float latest[KEPT];
    if (count > lane->kept) {
        count = lane->kept;
    }
    for (unsigned int i = 0; i < count; i++) {
        latest[i] = lane->ring[(lane->next + lane->kept - count + i) % lane->kept];
    }
    qsort(latest, count, sizeof(float), by_size);
    PyObject *list = PyList_New(count);
    for (unsigned int i = 0; list != NULL && i < count; i++) {
        PyObject *value = PyFloat_FromDouble(latest[i]);
        if (value == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, value);
    }
    return list;
}

static PyObject *
lane_window(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return lane_sorted((Lane *)self, ((Lane *)self)->fresh);
}

static PyObject *
lane_kept(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return lane_sorted((Lane *)self, KEPT);
}

static PyMethodDef lane_methods[] = {
    {"take", (PyCFunction)(void (*)(void))lane_take, METH_FASTCALL, "Book a request; its serial number."},
    {"open_window", lane_open_window, METH_VARARGS, "Count anew."},
    {"sample", lane_sample, METH_O, "Count a success that took so many seconds."},
    {"window", lane_window, METH_NOARGS, "The latencies of this window in order of size."},
    {"kept", lane_kept, METH_NOARGS, "All latencies that are still there, in order of size."},
    {NULL},
};

static PyMemberDef lane_members[] = {
    {"ready", T_DOUBLE, offsetof(Lane, ready), 0, NULL},
    {"interval", T_DOUBLE, offsetof(Lane, interval), 0, NULL},
    {"slack", T_DOUBLE, offsetof(Lane, slack), 0, NULL},
    {"opened", T_DOUBLE, offsetof(Lane, opened), 0, NULL},
    {"closes", T_DOUBLE, offsetof(Lane, closes), 0, NULL},
    {"mean", T_DOUBLE, offsetof(Lane, mean), 0, NULL},
    {"serial", T_LONGLONG, offsetof(Lane, serial), 0, NULL},
    {"ended", T_LONGLONG, offsetof(Lane, ended), 0, NULL},
    {"delivered", T_LONGLONG, offsetof(Lane, delivered), 0, NULL},
    {"epoch", T_LONGLONG, offsetof(Lane, epoch), 0, NULL},
    {"generation", T_LONGLONG, offsetof(Lane, generation), 0, NULL},
    {"sent_before", T_LONGLONG, offsetof(Lane, sent_before), 0, NULL},
    {"delivered_before", T_LONGLONG, offsetof(Lane, delivered_before), 0, NULL},
    {"failed", T_UINT, offsetof(Lane, failed), 0, NULL},
    {"fresh", T_UINT, offsetof(Lane, fresh), 0, NULL},
    {"plain", T_BOOL, offsetof(Lane, plain), 0, NULL},
    {"calm", T_BOOL, offsetof(Lane, calm), 0, NULL},
    {NULL},
};

static PyTypeObject LaneType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "sanderling.limit._lane.Lane",
    .tp_doc = "When the next request may leave, and what the last ones were answered.",
    .tp_basicsize = sizeof(Lane),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_init = lane_init,
    .tp_dealloc = lane_dealloc,
    .tp_methods = lane_methods,
    .tp_members = lane_members,
};

/* --- Permit ----------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *owner, *gate, *also;
    long long serial;
    double cost;
    char live;
} Permit;

static PyTypeObject PermitType;

static PyObject *
permit_make(PyObject *owner, PyObject *gate, long long serial, double cost, PyObject *also)
{
    Permit *permit = PyObject_New(Permit, &PermitType);
    if (permit != NULL) {
        permit->owner = Py_NewRef(owner);
        permit->gate = Py_NewRef(gate);
        permit->also = Py_NewRef(also);
        permit->serial = serial;
        permit->cost = cost;
        permit->live = 1;
    }
    return (PyObject *)permit;
}

static PyObject *
permit_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"owner", "gate", "serial", "cost", "also", NULL};
    PyObject *owner, *gate, *also = no_permits;
    long long serial;
    double cost = 1.0;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "OO!L|dO!", names, &owner, &LaneType, &gate, &serial, &cost, &PyTuple_Type, &also)) {
        return NULL;
    }
    return permit_make(owner, gate, serial, cost, also);
}

static void
permit_dealloc(PyObject *self)
{
    Permit *permit = (Permit *)self;
    Py_XDECREF(permit->owner);
    Py_XDECREF(permit->gate);
    Py_XDECREF(permit->also);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
permit_release(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"sent", NULL};
    Permit *permit = (Permit *)self;
    int sent = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p", names, &sent)) {
        return NULL;
    }
    if (!permit->live) {
        Py_RETURN_NONE;
    }
    PyObject *arguments[] = {permit->owner, self, sent ? Py_True : Py_False};
    PyObject *keywords = PyTuple_Pack(1, name_sent);
    if (keywords == NULL) {
        return NULL;
    }
    PyObject *done = PyObject_VectorcallMethod(
        name_give_back, arguments, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords);
    Py_DECREF(keywords);
    return done;
}

static PyObject *
permit_host(PyObject *self, void *Py_UNUSED(closure))
{
    return PyObject_GetAttr(((Permit *)self)->gate, name_host);
}

static PyObject *
permit_repr(PyObject *self)
{
    Permit *permit = (Permit *)self;
    PyObject *host = permit_host(self, NULL);
    if (host == NULL) {
        return NULL;
    }
    PyObject *text = PyUnicode_FromFormat(
        "<Permit %lld for %S, %s>", permit->serial, host, permit->live ? "live" : "spent");
    Py_DECREF(host);
    return text;
}

static PyMethodDef permit_methods[] = {
    {"release", (PyCFunction)(void (*)(void))permit_release, METH_VARARGS | METH_KEYWORDS,
     "Give the permit back, once: its token too if no request was `sent`, and a probe's place in any case."},
    {NULL},
};

static PyMemberDef permit_members[] = {
    {"owner", T_OBJECT_EX, offsetof(Permit, owner), READONLY, NULL},
    {"gate", T_OBJECT_EX, offsetof(Permit, gate), READONLY, NULL},
    {"also", T_OBJECT_EX, offsetof(Permit, also), 0, "what was taken from further scopes"},
    {"serial", T_LONGLONG, offsetof(Permit, serial), READONLY, NULL},
    {"cost", T_DOUBLE, offsetof(Permit, cost), READONLY, NULL},
    {"live", T_BOOL, offsetof(Permit, live), 0, NULL},
    {NULL},
};

static PyGetSetDef permit_properties[] = {
    {"host", permit_host, NULL, "The host that may be called.", NULL},
    {NULL},
};

static PyTypeObject PermitType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "sanderling.limit._lane.Permit",
    .tp_doc = "Leave to send one request. Report how it went with `Limiter.feedback`, or give it back with `release`.",
    .tp_basicsize = sizeof(Permit),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = permit_new,
    .tp_dealloc = permit_dealloc,
    .tp_repr = permit_repr,
    .tp_methods = permit_methods,
    .tp_members = permit_members,
    .tp_getset = permit_properties,
};

/* --- Front ------------------------------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    PyObject *gates, *now;
    long long granted; /* permits ever given, each once however many scopes it drew on */
    char real;         /* `now` is time.monotonic, which on Linux is a single call */
} Front;

static int
front_now(Front *front, double *now)
{
#ifdef __linux__
    if (front->real) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        *now = (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
        return 0;
    }
#endif
    PyObject *value = PyObject_CallNoArgs(front->now);
    if (value == NULL) {
        return -1;
    }
    *now = PyFloat_AsDouble(value);
    Py_DECREF(value);
    return *now == -1.0 && PyErr_Occurred() ? -1 : 0;
}

static int
front_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"gates", "now", NULL};
    Front *front = (Front *)self;
    PyObject *gates, *now;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O", names, &PyDict_Type, &gates, &now)) {
        return -1;
    }
    PyObject *time_module = PyImport_ImportModule("time");
    PyObject *monotonic = time_module == NULL ? NULL : PyObject_GetAttrString(time_module, "monotonic");
    Py_XDECREF(time_module);
    if (monotonic == NULL) {
        return -1;
    }
    front->real = now == monotonic;
    Py_DECREF(monotonic);
    Py_XSETREF(front->gates, Py_NewRef(gates));
    Py_XSETREF(front->now, Py_NewRef(now));
    return 0;
}

static int
front_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Front *)self)->gates);
    Py_VISIT(((Front *)self)->now);
    return 0;
}

static int
front_clear(PyObject *self)
{
    Py_CLEAR(((Front *)self)->gates);
    Py_CLEAR(((Front *)self)->now);
    return 0;
}

static void
front_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    front_clear(self);
    Py_TYPE(self)->tp_free(self);
}

/* A permit if the host is known, plain and due. NULL without an exception: ask Python. */
static PyObject *
front_fast(Front *front, PyObject *host)
{
    PyObject *gate = PyDict_GetItemWithError(front->gates, host);
    if (gate == NULL || !PyObject_TypeCheck(gate, &LaneType)) {
        return NULL;
    }
    Lane *lane = (Lane *)gate;
    double now;
    if (!lane->plain || front_now(front, &now) < 0 || lane->ready > now) {
        return NULL;
    }
    front->granted++;
    return permit_make((PyObject *)front, gate, lane_book(lane, now, 1.0), 1.0, no_permits);
}

/* Calls a method of the limiter itself with the arguments as they came, keywords included. */
static PyObject *
pass_on(PyObject *self, PyObject *name, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    PyObject *method = PyObject_GetAttr(self, name);
    if (method == NULL) {
        return NULL;
    }
    PyObject *result = PyObject_Vectorcall(method, args, (size_t)count, keywords);
    Py_DECREF(method);
    return result;
}

static PyObject *
front_try_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    if (count == 1 && keywords == NULL) {
        PyObject *permit = front_fast((Front *)self, args[0]);
        if (permit != NULL || PyErr_Occurred()) {
            return permit;
        }
    }
    return pass_on(self, name_try_slow, args, count, keywords);
}

/* --- Acquisition: what `acquire` returns; it does nothing until it is awaited, like the coroutine it stands for. -- */

typedef struct {
    PyObject_HEAD
    PyObject *front, *host;
    PyObject *slow; /* the coroutine that waits, once there is something to wait for */
    char over;
} Acquisition;

static PyTypeObject AcquisitionType;

static PyObject *
front_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    Acquisition *acquisition = PyObject_GC_New(Acquisition, &AcquisitionType);
    if (acquisition == NULL) {
        return NULL;
    }
    acquisition->front = Py_NewRef(self);
    acquisition->host = acquisition->slow = NULL;
    acquisition->over = 0;
    if (count == 1 && keywords == NULL) {
        acquisition->host = Py_NewRef(args[0]);
        return (PyObject *)acquisition;
    }
    acquisition->slow = pass_on(self, name_acquire_slow, args, count, keywords);
    if (acquisition->slow == NULL) {
        Py_DECREF(acquisition);
        return NULL;
    }
    PyObject_GC_Track(acquisition);
    return (PyObject *)acquisition;
}

static int
acquisition_traverse(PyObject *self, visitproc visit, void *arg)
{
    Acquisition *acquisition = (Acquisition *)self;
    Py_VISIT(acquisition->front);
    Py_VISIT(acquisition->slow);
    return 0;
}

static int
acquisition_clear(PyObject *self)
{
    Acquisition *acquisition = (Acquisition *)self;
    Py_CLEAR(acquisition->front);
    Py_CLEAR(acquisition->host);
    Py_CLEAR(acquisition->slow);
    return 0;
}

static void
acquisition_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    acquisition_clear(self);
    PyObject_GC_Del(self);
}

static PySendResult
acquisition_step(PyObject *self, PyObject *value, PyObject **result)
{
    Acquisition *acquisition = (Acquisition *)self;
    *result = NULL;
    if (acquisition->over) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited acquire()");
        return PYGEN_ERROR;
    }
    if (acquisition->slow == NULL) {
        *result = front_fast((Front *)acquisition->front, acquisition->host);
        if (*result != NULL) {
            acquisition->over = 1;
            return PYGEN_RETURN;
        }
        if (PyErr_Occurred()) {
            acquisition->over = 1;
            return PYGEN_ERROR;
        }
        acquisition->slow = PyObject_CallMethodOneArg(acquisition->front, name_acquire_slow, acquisition->host);
        if (acquisition->slow == NULL) {
            acquisition->over = 1;
            return PYGEN_ERROR;
        }
        if (!PyObject_GC_IsTracked(self)) {
            PyObject_GC_Track(self);
        }
    }
    PySendResult step = PyIter_Send(acquisition->slow, value, result);
    acquisition->over = step != PYGEN_NEXT;
    return step;
}

/* Turns the end of a step into what an iterator must do: StopIteration carries the permit. */
static PyObject *
acquisition_finish(PySendResult step, PyObject *result)
{
    if (step == PYGEN_RETURN) {
        PyErr_SetObject(PyExc_StopIteration, result);
        Py_CLEAR(result);
    }
    return result;
}

static PyObject *
acquisition_next(PyObject *self)
{
    PyObject *result;
    PySendResult step = acquisition_step(self, Py_None, &result);
    return acquisition_finish(step, result);
}

static PyObject *
acquisition_send(PyObject *self, PyObject *value)
{
    PyObject *result;
    PySendResult step = acquisition_step(self, value, &result);
    return acquisition_finish(step, result);
}

static PyObject *
acquisition_throw(PyObject *self, PyObject *args)
{
    Acquisition *acquisition = (Acquisition *)self;
    if (acquisition->slow != NULL && !acquisition->over) {
        PyObject *throw = PyObject_GetAttr(acquisition->slow, name_throw);
        PyObject *result = throw == NULL ? NULL : PyObject_CallObject(throw, args);
        Py_XDECREF(throw);
        acquisition->over = result == NULL;
        return result;
    }
    acquisition->over = 1;
    PyObject *type, *value = NULL, *traceback = NULL;
    if (!PyArg_UnpackTuple(args, "throw", 1, 3, &type, &value, &traceback)) {
        return NULL;
    }
    if (PyExceptionInstance_Check(type)) {
        PyErr_SetObject((PyObject *)Py_TYPE(type), type);
    }
    else {
        PyErr_SetObject(type, value);
    }
    return NULL;
}

static PyObject *
acquisition_close(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    Acquisition *acquisition = (Acquisition *)self;
    acquisition->over = 1;
    if (acquisition->slow == NULL) {
        Py_RETURN_NONE;
    }
    return PyObject_CallMethodNoArgs(acquisition->slow, name_close);
}

static PyMethodDef acquisition_methods[] = {
    /* With these an acquisition counts as a coroutine: a task can be made of it. */
    {"send", acquisition_send, METH_O, NULL},
    {"throw", acquisition_throw, METH_VARARGS, NULL},
    {"close", acquisition_close, METH_NOARGS, NULL},
    {NULL},
};

static PyAsyncMethods acquisition_async = {
    .am_await = PyObject_SelfIter,
    .am_send = acquisition_step,
};

static PyTypeObject AcquisitionType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "sanderling.limit._lane.Acquisition",
    .tp_doc = "A permit to come.",
    .tp_basicsize = sizeof(Acquisition),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = acquisition_dealloc,
    .tp_traverse = acquisition_traverse,
    .tp_clear = acquisition_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = acquisition_next,
    .tp_methods = acquisition_methods,
    .tp_as_async = &acquisition_async,
};

/* --- Feedback --------------------------------------------------------------------------------------------------- */

/* Whether an attribute is None; -1 on error. */
static int
is_none(PyObject *object, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL) {
        return -1;
    }
    Py_DECREF(value);
    return value == Py_None;
}

/* 1 and the latency if the feedback is a success and nothing more; 0 if there is more to it; -1 on error. */
static int
plain_success(PyObject *feedback, double *latency)
{
    PyObject *value = PyObject_GetAttr(feedback, name_status);
    if (value == NULL) {
        return -1;
    }
    long status = PyLong_AsLong(value);
    Py_DECREF(value);
    if (status == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (status < 200 || status >= 400) {
        return 0;
    }
    value = PyObject_GetAttr(feedback, name_latency);
    if (value == NULL) {
        return -1;
    }
    *latency = PyFloat_AsDouble(value);
    Py_DECREF(value);
    if (*latency == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    if (!(*latency > 0.0 && isfinite(*latency))) {
        return 0;
    }
    int none = is_none(feedback, name_error);
    if (none == 1) {
        none = is_none(feedback, name_retry_after);
    }
    if (none == 1) {
        none = is_none(feedback, name_quota);
    }
    return none;
}

static PyObject *
front_feedback(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    if (count != 2 || keywords != NULL) {
        return pass_on(self, name_feedback_slow, args, count, keywords);
    }
    if (Py_TYPE(args[0]) != &PermitType) {
        PyErr_Format(PyExc_TypeError, "feedback() takes a Permit first, got %s", Py_TYPE(args[0])->tp_name);
        return NULL;
    }
    Permit *permit = (Permit *)args[0];
    if (!permit->live) {
        Py_RETURN_NONE;
    }
    Lane *lane = (Lane *)permit->gate;
    double latency, now;
    if (lane->calm && permit->serial > lane->epoch && permit->also == no_permits) {
        int plain = plain_success(args[1], &latency);
        if (plain < 0 || (plain && (lane_count(lane, latency) < 0 || front_now((Front *)self, &now) < 0))) {
            return NULL;
        }
        if (plain) {
            permit->live = 0;
            lane->ended++;
            if (now < lane->closes) {
                Py_RETURN_NONE;
            }
            PyObject *arguments[] = {self, permit->gate};
            return PyObject_VectorcallMethod(
                name_close_window, arguments, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        }
    }
    return pass_on(self, name_feedback_slow, args, count, NULL);
}

static PyMethodDef front_methods[] = {
    {"try_acquire", (PyCFunction)(void (*)(void))front_try_acquire, METH_FASTCALL | METH_KEYWORDS,
     "A permit if `host` may be called this instant and nobody waits for it; else None, and nothing is taken."},
    {"acquire", (PyCFunction)(void (*)(void))front_acquire, METH_FASTCALL | METH_KEYWORDS,
     "Return when `host` may be called, first come first served. Raises CircuitOpen if it is left alone for now."},
    {"feedback", (PyCFunction)(void (*)(void))front_feedback, METH_FASTCALL | METH_KEYWORDS,
     "Learn how the permit's request went. A permit counts once; later reports on it are ignored."},
    {NULL},
};

static PyMemberDef front_members[] = {
    {"granted", T_LONGLONG, offsetof(Front, granted), 0, "Permits ever given, each once however many scopes it drew on."},
    {NULL},
};

static PyTypeObject FrontType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "sanderling.limit._lane.Front",
    .tp_doc = "The part of a limiter that is asked for every request.",
    .tp_basicsize = sizeof(Front),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = front_init,
    .tp_traverse = front_traverse,
    .tp_clear = front_clear,
    .tp_dealloc = front_dealloc,
    .tp_methods = front_methods,
    .tp_members = front_members,
};

/* --- The module ------------------------------------------------------------------------------------------------- */

static int
intern_names(void)
{
    const struct {
        PyObject **name;
        const char *text;
    } names[] = {
        {&name_acquire_slow, "_acquire_slow"}, {&name_try_slow, "_try_slow"},
        {&name_feedback_slow, "_feedback_slow"}, {&name_close_window, "_close_window"},
        {&name_give_back, "_give_back"}, {&name_host, "host"}, {&name_sent, "sent"}, {&name_throw, "throw"},
        {&name_close, "close"}, {&name_status, "status"}, {&name_latency, "latency"}, {&name_error, "error"},
        {&name_retry_after, "retry_after"}, {&name_quota, "quota"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *names[i].name = PyUnicode_InternFromString(names[i].text);
        if (*names[i].name == NULL) {
            return -1;
        }
    }
    no_permits = PyTuple_New(0);
    return no_permits == NULL ? -1 : 0;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_lane",
    .m_doc = "The fast path of the limiter, in C.",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__lane(void)
{
    if (intern_names() < 0 || PyType_Ready(&AcquisitionType) < 0) {
        return NULL;
    }
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddType(module, &LaneType) < 0 || PyModule_AddType(module, &PermitType) < 0
        || PyModule_AddType(module, &FrontType) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
