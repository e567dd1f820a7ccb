/* Opens flat Avro records, many at a time, without an object for each field: see _flat_avro.pyi and decision record 51.

   Every read is checked against the value's end. At the first value that is not as plain as this file needs, all are given
   back unread: fastavro reads them then, and says what is wrong. What is written is byte by byte what it would have been. */
#include "flat_json.h"

#define BRANCHES_MAX 4
enum { SINGLE = 4, DOUBLE, KINDS }; /* beside those that are written */

typedef struct {
    unsigned char kinds[BRANCHES_MAX];
    int branches; /* 0: no union, and the kind is the first */
    int place;    /* in what is written; -1: in none */
} Field;

typedef struct {
    Field fields[FIELDS_MAX];
    Py_ssize_t count;
} Plan;

static const unsigned char *read_value(const unsigned char *at, const unsigned char *end, const Field *field, Value *value)
{
    uint64_t found = 0;
    int64_t branch = 0, size;
    if (field->branches) {
        if (!(at = read_varint(at, end, &found)) || (branch = unzigzag(found)) < 0 || branch >= field->branches)
            return NULL;
    }
    value->kind = field->kinds[branch];
    switch (value->kind) {
    case NOTHING:
        return at;
    case TRUTH:
        if (at == end || *at > 1)
            return NULL;
        value->number = *at;
        return at + 1;
    case WHOLE:
        if (!(at = read_varint(at, end, &found)))
            return NULL;
        value->number = unzigzag(found);
        return at;
    case TEXT:
        if (!(at = read_varint(at, end, &found)) || (size = unzigzag(found)) < 0 || size > end - at)
            return NULL;
        value->at = (const char *)at;
        value->size = (Py_ssize_t)size;
        return is_plain(value->at, value->size) ? at + value->size : NULL;
    case SINGLE:
        return end - at < 4 ? NULL : at + 4;
    default:
        return end - at < 8 ? NULL : at + 8;
    }
}

static int read_record(const unsigned char *at, const unsigned char *end, const void *known, Value *values)
{
    const Plan *plan = known;
    Value passed;
    for (Py_ssize_t n = 0; n < plan->count; n++) {
        const Field *field = &plan->fields[n];
        if (!(at = read_value(at, end, field, field->place < 0 ? &passed : &values[field->place])))
            return 0;
    }
    return at == end;
}

/* Returns 0 with an error set where the plan is none. */
static int read_plan(PyObject *fields, Py_ssize_t written, void *empty)
{
    Plan *plan = empty;
    int filled[FIELDS_MAX] = {0};
    plan->count = PyTuple_GET_SIZE(fields);
    if (plan->count > FIELDS_MAX)
        return PyErr_Format(PyExc_ValueError, "expected at most %d fields", FIELDS_MAX) != NULL;
    for (Py_ssize_t n = 0; n < plan->count; n++) {
        Field *field = &plan->fields[n];
        const char *kinds;
        Py_ssize_t size;
        int is_union;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(fields, n), "y#pi", &kinds, &size, &is_union, &field->place))
            return 0;
        if (size < 1 || size > BRANCHES_MAX || (!is_union && size != 1) || field->place < -1 || field->place >= written)
            return PyErr_Format(PyExc_ValueError, "expected 1 to %d kinds and a place", BRANCHES_MAX) != NULL;
        field->branches = is_union ? (int)size : 0;
        for (Py_ssize_t branch = 0; branch < size; branch++) {
            int kind = kinds[branch];
            if (kind < 0 || kind >= KINDS || (field->place >= 0 && kind >= SINGLE))
                return PyErr_Format(PyExc_ValueError, "expected kinds below %d, and %d where they are written", KINDS,
                                    SINGLE) != NULL;
            field->kinds[branch] = (unsigned char)kind;
        }
        if (field->place >= 0 && filled[field->place]++)
            return PyErr_Format(PyExc_ValueError, "expected one field at each place") != NULL;
    }
    return all_are_filled(filled, written);
}

static PyObject *open_flat(PyObject *module, PyObject *args)
{
    Plan plan;
    return open_by_plan(args, read_plan, read_record, &plan);
}

static PyMethodDef methods[] = {{"open_flat", open_flat, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_flat_avro", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__flat_avro(void)
{
    return PyModule_Create(&definition);
}
