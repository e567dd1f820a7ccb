/* Reads simple events, many at a time, without an object for each: see _simple_events.pyi and decision records 33 and 42.

   A value is simple if it is one JSON object of printable ASCII without a backslash, whose values are strings, short
   numbers, true, false, null, and objects and arrays of the same, not deeper than DEPTH_MAX. All that is accepted here is
   read alike by EventDecoder; at the first value that is not simple all are given back unread. CPython ends the bytes of a
   bytes object with a NUL, which no rule below accepts: so no rule reads past it.

   An event has each of the five fields. Behind them come columns that are compared besides: of these it may lack some, and
   each is given as the JSON that stands there. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { MATCH_KEY, TRANSACTION_KEY, LEG, CURRENCY, AMOUNT, FIELDS };
#define PATHS_MAX 16 /* of fields and columns */
#define DIGITS_MAX 18
#define NAMES_MAX 16
#define DEPTH_MAX 16

typedef struct {
    const char *at;
    Py_ssize_t size;
} Text;

typedef struct {
    Text name[NAMES_MAX][PATHS_MAX]; /* the keys on the way to each field, by depth */
    int names[PATHS_MAX];
    int count; /* of fields and columns */
    Py_ssize_t text_max;
} Wanted;

typedef struct {
    Text text[PATHS_MAX]; /* of the amount unused; of a column its JSON, of no size where it is absent */
    int64_t amount;
    int met[PATHS_MAX]; /* how many keys of its path were met; all of them: the field was read */
} Event;

typedef struct {
    Text text; /* at: NULL where the value is none */
    int64_t number;
    int is_whole;
} Value;

typedef struct {
    const Wanted *wanted;
    Event *event;
} Reading;

static const char *skip_space(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
        at++;
    return at;
}

/* `at` is behind the opening quote; returns what is behind the closing one, or NULL. */
static const char *read_text(const char *at, Text *text)
{
    const char *start = at;
    while ((unsigned char)*at >= 0x20 && (unsigned char)*at < 0x7F && *at != '"' && *at != '\\')
        at++;
    if (*at != '"')
        return NULL;
    text->at = start;
    text->size = at - start;
    return at + 1;
}

/* Returns what is behind the number, or NULL. is_whole: it has no fraction. */
static const char *read_number(const char *at, int64_t *number, int *is_whole)
{
    int negative = *at == '-', digits = 0;
    int64_t value = 0;
    at += negative;
    if (*at == '0' && at[1] >= '0' && at[1] <= '9')
        return NULL;
    for (; *at >= '0' && *at <= '9' && digits <= DIGITS_MAX; at++, digits++)
        value = digits < DIGITS_MAX ? value * 10 + (*at - '0') : value;
    if (!digits || digits > DIGITS_MAX)
        return NULL;
    *is_whole = *at != '.';
    if (!*is_whole) {
        int fraction = 0;
        for (at++; *at >= '0' && *at <= '9' && digits <= DIGITS_MAX; at++, digits++)
            fraction = 1;
        if (!fraction || digits > DIGITS_MAX)
            return NULL;
    }
    *number = negative ? -value : value;
    return at;
}

static const char *read_word(const char *at)
{
    static const char *const words[] = {"true", "false", "null"};
    for (int n = 0; n < 3; n++) {
        size_t size = strlen(words[n]);
        if (!strncmp(at, words[n], size))
            return at + size;
    }
    return NULL;
}

static const char *read_object(const char *at, const Reading *reading, int depth, unsigned wanted);
static const char *read_array(const char *at, const Reading *reading, int depth);

static inline const char *read_scalar(const char *at, Value *value)
{
    if (*at == '"')
        return read_text(at + 1, &value->text);
    if (*at == '-' || (*at >= '0' && *at <= '9'))
        return read_number(at, &value->number, &value->is_whole);
    return read_word(at);
}

/* json: all of the value. */
static int keep(const Reading *reading, int field, const Value *value, const Text *json)
{
    Event *event = reading->event;
    if (field >= FIELDS) {
        event->text[field] = *json;
        return 1;
    }
    if (field == AMOUNT) {
        event->amount = value->number;
        return value->is_whole;
    }
    event->text[field] = value->text;
    return value->text.at && value->text.size <= reading->wanted->text_max;
}

/* A key that an object has twice is not simple, if a path leads through it. */
static const char *read_member(const char *at, const Reading *reading, int depth, unsigned wanted)
{
    const Wanted *paths = reading->wanted;
    unsigned here = 0, inside = 0;
    Value value = {{NULL, 0}, 0, 0};
    Text name, json;
    if (*at != '"' || !(at = read_text(at + 1, &name)))
        return NULL;
    for (int field = 0; field < paths->count; field++) {
        const Text *key = &paths->name[depth][field];
        if (!(wanted >> field & 1) || name.size != key->size || memcmp(name.at, key->at, (size_t)name.size))
            continue;
        if (reading->event->met[field]++ != depth)
            return NULL;
        if (paths->names[field] == depth + 1)
            here |= 1u << field;
        else
            inside |= 1u << field;
    }
    at = skip_space(at);
    if (*at != ':')
        return NULL;
    json.at = at = skip_space(at + 1);
    if (*at == '{')
        at = read_object(at, reading, depth + 1, inside);
    else if (inside)
        return NULL;
    else
        at = *at == '[' ? read_array(at, reading, depth + 1) : read_scalar(at, &value);
    if (!at)
        return NULL;
    json.size = at - json.at;
    for (int field = 0; here >> field; field++)
        if (here >> field & 1 && !keep(reading, field, &value, &json))
            return NULL;
    return at;
}

/* `at` is on the opening bracket. wanted: a bit for each field whose path has led here, by `depth` keys. */
static const char *read_object(const char *at, const Reading *reading, int depth, unsigned wanted)
{
    if (depth >= DEPTH_MAX)
        return NULL;
    at = skip_space(at + 1);
    if (*at == '}')
        return at + 1;
    for (;; at = skip_space(at + 1)) {
        if (!(at = read_member(at, reading, depth, wanted)))
            return NULL;
        at = skip_space(at);
        if (*at == '}')
            return at + 1;
        if (*at != ',')
            return NULL;
    }
}

static const char *read_array(const char *at, const Reading *reading, int depth)
{
    Value value;
    if (depth >= DEPTH_MAX)
        return NULL;
    at = skip_space(at + 1);
    if (*at == ']')
        return at + 1;
    for (;; at = skip_space(at + 1)) {
        if (*at == '{')
            at = read_object(at, reading, depth + 1, 0);
        else
            at = *at == '[' ? read_array(at, reading, depth + 1) : read_scalar(at, &value);
        if (!at)
            return NULL;
        at = skip_space(at);
        if (*at == ']')
            return at + 1;
        if (*at != ',')
            return NULL;
    }
}

static int read_event(const char *at, const char *end, const Wanted *wanted, Event *event)
{
    const Reading reading = {wanted, event};
    memset(event, 0, sizeof *event);
    at = skip_space(at);
    if (*at != '{' || !(at = read_object(at, &reading, 0, (1u << wanted->count) - 1)) || skip_space(at) != end)
        return 0;
    for (int field = 0; field < FIELDS; field++)
        if (event->met[field] != wanted->names[field])
            return 0;
    return event->text[MATCH_KEY].size > 0 && event->text[CURRENCY].size > 0;
}

/* A new reference: the last one again where the currency is the same, as it nearly always is. */
static PyObject *currency_of(const Text *text, PyObject *last)
{
    if (last && PyUnicode_GET_LENGTH(last) == text->size && !memcmp(PyUnicode_1BYTE_DATA(last), text->at, (size_t)text->size))
        return Py_NewRef(last);
    return PyUnicode_DecodeASCII(text->at, text->size, "strict");
}

/* columns: room for each column's JSON of each event, one column after the other. Its places are 32-bit integers. */
static int fill(PyObject *values, const Wanted *wanted, PyObject *keys, int64_t *amounts, PyObject *currencies, Text *columns)
{
    PyObject *last = NULL;
    Py_ssize_t count = PyList_GET_SIZE(values), size = 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *value = PyList_GET_ITEM(values, n), *key;
        Event event;
        if (!PyBytes_CheckExact(value) || (size += PyBytes_GET_SIZE(value)) > INT32_MAX)
            return 0;
        const char *at = PyBytes_AS_STRING(value);
        if (!read_event(at, at + PyBytes_GET_SIZE(value), wanted, &event))
            return 0;
        if (!(key = PyBytes_FromStringAndSize(event.text[MATCH_KEY].at, event.text[MATCH_KEY].size)))
            return -1;
        PyList_SET_ITEM(keys, n, key);
        if (!(last = currency_of(&event.text[CURRENCY], last)))
            return -1;
        PyList_SET_ITEM(currencies, n, last);
        amounts[n] = event.amount;
        for (int field = FIELDS; field < wanted->count; field++)
            columns[(field - FIELDS) * count + n] = event.text[field];
    }
    return 1;
}

/* Returns where each text ends, behind a zero, and all texts; NULL with an error. */
static PyObject *column_of(const Text *texts, Py_ssize_t count)
{
    Py_ssize_t size = 0;
    for (Py_ssize_t n = 0; n < count; n++)
        size += texts[n].size;
    PyObject *column = NULL, *bytes = PyBytes_FromStringAndSize(NULL, size);
    PyObject *ends = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(int32_t));
    if (bytes && ends) {
        char *start = PyBytes_AS_STRING(bytes), *to = start;
        int32_t *end = (int32_t *)PyBytes_AS_STRING(ends);
        *end++ = 0;
        for (Py_ssize_t n = 0; n < count; n++) {
            if (texts[n].size)
                memcpy(to, texts[n].at, (size_t)texts[n].size);
            to += texts[n].size;
            *end++ = (int32_t)(to - start);
        }
        column = PyTuple_Pack(2, ends, bytes);
    }
    Py_XDECREF(ends);
    Py_XDECREF(bytes);
    return column;
}

/* Returns all columns, or NULL with an error. */
static PyObject *columns_of(const Text *texts, int columns, Py_ssize_t count)
{
    PyObject *made = PyTuple_New(columns), *column;
    for (int n = 0; made && n < columns; n++) {
        if ((column = column_of(texts + n * count, count)))
            PyTuple_SET_ITEM(made, n, column);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* Returns 0 with an error set where the paths are none. */
static int read_paths(PyObject *paths, Wanted *wanted)
{
    if (PyTuple_GET_SIZE(paths) < FIELDS)
        return PyErr_Format(PyExc_ValueError, "expected %d paths, and those of columns", FIELDS) != NULL;
    wanted->count = (int)PyTuple_GET_SIZE(paths);
    for (int field = 0; field < wanted->count; field++) {
        PyObject *path = PyTuple_GET_ITEM(paths, field);
        if (!PyTuple_Check(path) || PyTuple_GET_SIZE(path) < 1 || PyTuple_GET_SIZE(path) > NAMES_MAX)
            return PyErr_Format(PyExc_ValueError, "expected 1 to %d keys in a path", NAMES_MAX) != NULL;
        wanted->names[field] = (int)PyTuple_GET_SIZE(path);
        for (int n = 0; n < wanted->names[field]; n++) {
            char *at;
            if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(path, n), &at, &wanted->name[n][field].size))
                return 0;
            wanted->name[n][field].at = at;
        }
    }
    return 1;
}

static PyObject *read_simple(PyObject *module, PyObject *args)
{
    PyObject *values, *paths, *keys = NULL, *amounts = NULL, *currencies = NULL, *columns = NULL, *answer = NULL;
    Wanted wanted;
    if (!PyArg_ParseTuple(args, "O!O!n", &PyList_Type, &values, &PyTuple_Type, &paths, &wanted.text_max))
        return NULL;
    if (PyTuple_GET_SIZE(paths) > PATHS_MAX)
        Py_RETURN_NONE;
    if (!read_paths(paths, &wanted))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(values);
    int more = wanted.count - FIELDS;
    Text *texts = PyMem_New(Text, (size_t)(count * more));
    if (!texts)
        return PyErr_NoMemory();
    keys = PyList_New(count);
    currencies = PyList_New(count);
    amounts = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(int64_t));
    if (keys && currencies && amounts) {
        int filled = fill(values, &wanted, keys, (int64_t *)PyBytes_AS_STRING(amounts), currencies, texts);
        if (filled > 0 && (columns = columns_of(texts, more, count)))
            answer = PyTuple_Pack(4, keys, amounts, currencies, columns);
        else if (!filled)
            answer = Py_NewRef(Py_None);
    }
    PyMem_Free(texts);
    Py_XDECREF(keys);
    Py_XDECREF(amounts);
    Py_XDECREF(currencies);
    Py_XDECREF(columns);
    return answer;
}

static PyMethodDef methods[] = {{"read_simple", read_simple, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_simple_events", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__simple_events(void)
{
    return PyModule_Create(&definition);
}
