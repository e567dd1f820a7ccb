/* What the compiled openers of flat records share: values as they stand in a record, and JSON as msgspec writes it.

   A value is written only where JSON needs no escapes for it: its text is printable ASCII without quotes and backslashes. */
#ifndef TALLYSTICK_FLAT_JSON_H
#define TALLYSTICK_FLAT_JSON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define FIELDS_MAX 256
#define NUMBER_BYTES_MAX 20 /* of -9223372036854775808, and of 18446744073709551615 */

enum { NOTHING, TRUTH, WHOLE, TEXT, ABSENT, UNSIGNED };

typedef struct {
    int kind;       /* ABSENT: neither name nor value is written */
    const char *at; /* of a text */
    Py_ssize_t size;
    int64_t number; /* of a truth value, too; of UNSIGNED its bits */
} Value;

/* Seven bits a byte, the lowest first, at most ten bytes. Returns what is behind it, or NULL. */
static inline const unsigned char *read_varint(const unsigned char *at, const unsigned char *end, uint64_t *found)
{
    *found = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (at == end || (shift == 63 && *at > 1))
            return NULL;
        *found |= (uint64_t)(*at & 0x7F) << shift;
        if (!(*at++ & 0x80))
            return at;
    }
    return NULL;
}

static inline int64_t unzigzag(uint64_t found)
{
    return (int64_t)(found >> 1) ^ -(int64_t)(found & 1);
}

static inline int is_plain(const char *at, Py_ssize_t size)
{
    for (Py_ssize_t n = 0; n < size; n++)
        if ((unsigned char)at[n] < 0x20 || (unsigned char)at[n] > 0x7E || at[n] == '"' || at[n] == '\\')
            return 0;
    return 1;
}

static inline char *write_bytes(char *to, const char *from, Py_ssize_t size)
{
    memcpy(to, from, (size_t)size);
    return to + size;
}

static inline char *write_number(char *to, int negative, uint64_t left)
{
    char digits[NUMBER_BYTES_MAX];
    int count = 0;
    do
        digits[count++] = (char)('0' + left % 10);
    while (left /= 10);
    if (negative)
        *to++ = '-';
    while (count)
        *to++ = digits[--count];
    return to;
}

static inline char *write_value(char *to, const Value *value)
{
    switch (value->kind) {
    case NOTHING:
        return write_bytes(to, "null", 4);
    case TRUTH:
        return value->number ? write_bytes(to, "true", 4) : write_bytes(to, "false", 5);
    case WHOLE:
        return write_number(to, value->number < 0, value->number < 0 ? 0 - (uint64_t)value->number : (uint64_t)value->number);
    case UNSIGNED:
        return write_number(to, 0, (uint64_t)value->number);
    default:
        *to++ = '"';
        to = write_bytes(to, value->at, value->size);
        *to++ = '"';
        return to;
    }
}

/* Returns a new object of JSON, or NULL with an error. names: what stands before each value, quotes and colon included. */
static inline PyObject *write_object(const Value *values, PyObject *names)
{
    Py_ssize_t count = PyTuple_GET_SIZE(names), bytes_max = 2;
    for (Py_ssize_t n = 0; n < count; n++)
        bytes_max += PyBytes_GET_SIZE(PyTuple_GET_ITEM(names, n)) + 1 +
                     (values[n].kind == TEXT ? values[n].size + 2 : NUMBER_BYTES_MAX);
    PyObject *json = PyBytes_FromStringAndSize(NULL, bytes_max);
    if (!json)
        return NULL;
    char *start = PyBytes_AS_STRING(json), *to = start;
    *to++ = '{';
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *name = PyTuple_GET_ITEM(names, n);
        if (values[n].kind == ABSENT)
            continue;
        if (to != start + 1)
            *to++ = ',';
        to = write_bytes(to, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name));
        to = write_value(to, &values[n]);
    }
    *to++ = '}';
    _PyBytes_Resize(&json, to - start); /* NULL with an error where it fails */
    return json;
}

/* Returns 0 with an error set where they are none. */
static inline int check_names(PyObject *names)
{
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    if (count < 1 || count > FIELDS_MAX)
        return PyErr_Format(PyExc_ValueError, "expected 1 to %d names", FIELDS_MAX) != NULL;
    for (Py_ssize_t n = 0; n < count; n++)
        if (!PyBytes_CheckExact(PyTuple_GET_ITEM(names, n)))
            return PyErr_Format(PyExc_ValueError, "expected names as bytes") != NULL;
    return 1;
}

/* Opens one value's body. Returns 1; 0 where it is not plain. */
typedef int (*ReadRecord)(const unsigned char *at, const unsigned char *end, const void *plan, Value *values);

/* Returns a list of JSON; None where a value is not plain, or does not begin with the head; NULL with an error. */
static inline PyObject *open_values(PyObject *values, const char *head, Py_ssize_t head_size, PyObject *names,
                                    ReadRecord read, const void *plan)
{
    Value found[FIELDS_MAX];
    PyObject *opened = PyList_New(PyList_GET_SIZE(values));
    if (!opened)
        return NULL;
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(values); n++) {
        PyObject *value = PyList_GET_ITEM(values, n), *json;
        const unsigned char *start = PyBytes_CheckExact(value) ? (const unsigned char *)PyBytes_AS_STRING(value) : NULL;
        if (!start || PyBytes_GET_SIZE(value) < head_size || memcmp(start, head, (size_t)head_size) ||
            !read(start + head_size, start + PyBytes_GET_SIZE(value), plan, found)) {
            Py_DECREF(opened);
            Py_RETURN_NONE;
        }
        if (!(json = write_object(found, names))) {
            Py_DECREF(opened);
            return NULL;
        }
        PyList_SET_ITEM(opened, n, json);
    }
    return opened;
}

/* Returns 0 with an error set where a place has no field. */
static inline int all_are_filled(const int *filled, Py_ssize_t places)
{
    for (Py_ssize_t n = 0; n < places; n++)
        if (!filled[n])
            return PyErr_Format(PyExc_ValueError, "expected a field at each place") != NULL;
    return 1;
}

/* Fills a format's plan. Returns 0 with an error set where the fields are none. */
typedef int (*ReadPlan)(PyObject *fields, Py_ssize_t written, void *empty);

/* What `open_flat` of each format does with its four arguments (the .pyi). plan: room for the format's own. */
static inline PyObject *open_by_plan(PyObject *args, ReadPlan read_plan, ReadRecord read, void *plan)
{
    PyObject *values, *fields, *names;
    const char *head;
    Py_ssize_t head_size;
    if (!PyArg_ParseTuple(args, "O!y#O!O!", &PyList_Type, &values, &head, &head_size, &PyTuple_Type, &fields, &PyTuple_Type,
                          &names))
        return NULL;
    if (!check_names(names) || !read_plan(fields, PyTuple_GET_SIZE(names), plan))
        return NULL;
    return open_values(values, head, head_size, names, read, plan);
}

#endif
