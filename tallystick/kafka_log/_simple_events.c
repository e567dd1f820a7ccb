/* Reads simple events, many at a time, without an object for each: see _simple_events.pyi and decision record 33.

   A value is simple if it is one flat JSON object of printable ASCII without a backslash, whose members are strings,
   short numbers, true, false or null. All that is accepted here is read alike by EventDecoder; at the first value that is
   not simple all are given back unread. CPython ends the bytes of a bytes object with a NUL, which no rule below accepts:
   so no rule reads past it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { MATCH_KEY, TRANSACTION_KEY, LEG, CURRENCY, AMOUNT, FIELDS };
#define DIGITS_MAX 18

typedef struct {
    const char *at;
    Py_ssize_t size;
} Text;

typedef struct {
    Text name[FIELDS];
    Py_ssize_t text_max;
} Wanted;

typedef struct {
    Text text[FIELDS]; /* at: NULL until it is found; of the amount unused */
    int64_t amount;
    int has_amount;
} Event;

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

static int is_named(const Text *name, const Text *wanted)
{
    return name->size == wanted->size && !memcmp(name->at, wanted->at, (size_t)name->size);
}

static const char *read_member(const char *at, const Wanted *wanted, Event *event)
{
    Text name, text = {NULL, 0};
    int64_t number = 0;
    int is_whole = 0;
    if (*at != '"' || !(at = read_text(at + 1, &name)))
        return NULL;
    at = skip_space(at);
    if (*at != ':')
        return NULL;
    at = skip_space(at + 1);
    if (*at == '"')
        at = read_text(at + 1, &text);
    else if (*at == '-' || (*at >= '0' && *at <= '9'))
        at = read_number(at, &number, &is_whole);
    else
        at = read_word(at);
    if (!at)
        return NULL;
    for (int field = 0; field < AMOUNT; field++) {
        if (!is_named(&name, &wanted->name[field]))
            continue;
        if (!text.at || event->text[field].at || text.size > wanted->text_max)
            return NULL;
        event->text[field] = text;
    }
    if (is_named(&name, &wanted->name[AMOUNT])) {
        if (!is_whole || event->has_amount)
            return NULL;
        event->amount = number;
        event->has_amount = 1;
    }
    return at;
}

static int read_event(const char *at, const char *end, const Wanted *wanted, Event *event)
{
    memset(event, 0, sizeof *event);
    at = skip_space(at);
    if (*at != '{')
        return 0;
    do {
        at = read_member(skip_space(at + 1), wanted, event);
        if (!at)
            return 0;
        at = skip_space(at);
    } while (*at == ',');
    if (*at != '}' || skip_space(at + 1) != end || !event->has_amount)
        return 0;
    for (int field = 0; field < AMOUNT; field++)
        if (!event->text[field].at)
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

static int fill(PyObject *values, const Wanted *wanted, PyObject *keys, int64_t *amounts, PyObject *currencies)
{
    PyObject *last = NULL;
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(values); n++) {
        PyObject *value = PyList_GET_ITEM(values, n), *key;
        Event event;
        if (!PyBytes_CheckExact(value))
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
    }
    return 1;
}

static PyObject *read_simple(PyObject *module, PyObject *args)
{
    PyObject *values, *names, *keys = NULL, *amounts = NULL, *currencies = NULL, *answer = NULL;
    Wanted wanted;
    if (!PyArg_ParseTuple(args, "O!O!n", &PyList_Type, &values, &PyTuple_Type, &names, &wanted.text_max))
        return NULL;
    if (PyTuple_GET_SIZE(names) != FIELDS)
        return PyErr_Format(PyExc_ValueError, "expected %d names", FIELDS);
    for (int field = 0; field < FIELDS; field++) {
        char *at;
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(names, field), &at, &wanted.name[field].size))
            return NULL;
        wanted.name[field].at = at;
    }
    Py_ssize_t count = PyList_GET_SIZE(values);
    keys = PyList_New(count);
    currencies = PyList_New(count);
    amounts = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(int64_t));
    if (keys && currencies && amounts) {
        int filled = fill(values, &wanted, keys, (int64_t *)PyBytes_AS_STRING(amounts), currencies);
        if (filled > 0)
            answer = PyTuple_Pack(3, keys, amounts, currencies);
        else if (!filled)
            answer = Py_NewRef(Py_None);
    }
    Py_XDECREF(keys);
    Py_XDECREF(amounts);
    Py_XDECREF(currencies);
    return answer;
}

static PyMethodDef methods[] = {{"read_simple", read_simple, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_simple_events", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__simple_events(void)
{
    return PyModule_Create(&definition);
}
