/* Writes the texts by which events and rows are compared besides money, many at a time: see _compared_texts.pyi and decision
   record 48.

   A value is plain where what is compared of it follows from its bytes alone: a short text of printable ASCII that JSON writes
   as it stands, a number without exponent, a moment in UTC. Of a row with another value nothing is written: its place is
   returned, and ComparedColumns.text_of writes it. Nothing is read or written outside of a buffer, whatever the ends say. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { TEXT, NUMBER, TIME, KINDS };
#define COLUMNS_MAX 64
#define HEAD_BYTES_MAX 0x10000 /* of what stands before a value */
#define NUMBER_BYTES_MAX 100
#define FRACTION_DIGITS 6
#define MORE_BYTES 8 /* than a value has: quotes, and of a moment its zone and five digits */

typedef struct {
    const char *at; /* NULL: nothing is there */
    Py_ssize_t size;
} Text;

typedef struct {
    Py_buffer valid, ends, bytes; /* as Arrow has them; obj: NULL where there is none */
    Py_ssize_t first;             /* the place of row 0 in them */
    const char *head;             /* what stands before a value */
    Py_ssize_t head_size;
    int kind;
} Column;

static int32_t end_before(const Column *column, Py_ssize_t row)
{
    int32_t end;
    memcpy(&end, (const char *)column->ends.buf + (column->first + row) * (Py_ssize_t)sizeof end, sizeof end);
    return end;
}

/* Returns 0 where the buffers hold no such row. */
static int find_value(const Column *column, Py_ssize_t row, Text *text)
{
    Py_ssize_t place = column->first + row;
    text->at = NULL;
    text->size = 0;
    if (column->valid.obj && !(((const unsigned char *)column->valid.buf)[place >> 3] >> (place & 7) & 1))
        return 1;
    int32_t start = end_before(column, row), end = end_before(column, row + 1);
    if (start < 0 || end < start || end > column->bytes.len)
        return 0;
    text->at = end ? (const char *)column->bytes.buf + start : "";
    text->size = end - start;
    return 1;
}

/* Makes the text of a JSON value: what is in its quotes, or all of it. Quotes and backslashes inside are plain to no kind. */
static void open_json(Text *text)
{
    if (!text->size || (text->size == 4 && !memcmp(text->at, "null", 4)))
        text->at = NULL;
    else if (text->size > 1 && text->at[0] == '"' && text->at[text->size - 1] == '"') {
        text->at++;
        text->size -= 2;
    }
}

static char *write_bytes(char *to, const char *from, Py_ssize_t size)
{
    memcpy(to, from, (size_t)size);
    return to + size;
}

static int is_digit(char one)
{
    return one >= '0' && one <= '9';
}

/* Each writer returns what is behind the text that is compared, or NULL where the value is not plain. */
static char *write_text(char *to, const Text *text, Py_ssize_t text_max)
{
    if (text->size > text_max)
        return NULL;
    for (Py_ssize_t n = 0; n < text->size; n++)
        if (text->at[n] < 0x20 || text->at[n] > 0x7E || text->at[n] == '"' || text->at[n] == '\\')
            return NULL;
    return write_bytes(to, text->at, text->size);
}

/* Without zeros at the end of a fraction, and of zero without its sign. */
static char *write_number(char *to, const Text *text)
{
    const char *at = text->at, *end = at + text->size, *digits, *last;
    if (text->size > NUMBER_BYTES_MAX)
        return NULL;
    at += at < end && *at == '-';
    for (digits = at; at < end && is_digit(*at);)
        at++;
    if (at == digits || (*digits == '0' && at - digits > 1))
        return NULL;
    last = at;
    if (at < end) {
        if (*at++ != '.' || at == end)
            return NULL;
        for (; at < end && is_digit(*at); at++)
            last = *at == '0' ? last : at + 1;
        if (at < end)
            return NULL;
    }
    if (*digits == '0' && last == digits + 1)
        return write_bytes(to, "0", 1);
    return write_bytes(to, text->at, last - text->at);
}

/* Returns the number that two digits are, or -1. */
static int two_digits(const char *at)
{
    return is_digit(at[0]) && is_digit(at[1]) ? (at[0] - '0') * 10 + (at[1] - '0') : -1;
}

/* Is it a day and a second of the calendar? at: 19 bytes, as 2026-01-31T23:59:59. The last day of a leap year is not plain. */
static int is_second(const char *at)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int century = two_digits(at), year = two_digits(at + 2), month = two_digits(at + 5), day = two_digits(at + 8);
    int hour = two_digits(at + 11), minute = two_digits(at + 14), second = two_digits(at + 17);
    return century >= 0 && year >= 0 && century + year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] &&
           hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60 && at[4] == '-' && at[7] == '-' &&
           (at[10] == 'T' || at[10] == ' ') && at[13] == ':' && at[16] == ':';
}

/* With T and Z, and no fraction or one of six digits. */
static char *write_time(char *to, const Text *text)
{
    const char *at = text->at, *end = at + text->size, *digits;
    int is_whole = 1;
    if (text->size < 19 || !is_second(at))
        return NULL;
    at += 19;
    digits = at;
    if (at < end && *at == '.') {
        for (digits = ++at; at < end && is_digit(*at); at++)
            is_whole &= *at == '0';
        if (at == digits || at - digits > FRACTION_DIGITS)
            return NULL;
    }
    if (!(at == end || (end - at == 1 && *at == 'Z') || (end - at == 6 && !memcmp(at, "+00:00", 6))))
        return NULL;
    to = write_bytes(to, text->at, 19);
    to[-9] = 'T';
    if (!is_whole) {
        *to++ = '.';
        to = write_bytes(to, digits, at - digits);
        for (; at - digits < FRACTION_DIGITS; digits--)
            *to++ = '0';
    }
    *to++ = 'Z';
    return to;
}

static char *write_value(char *to, const Text *text, int kind, Py_ssize_t text_max)
{
    if (!text->at)
        return write_bytes(to, "null", 4);
    *to++ = '"';
    to = kind == TEXT ? write_text(to, text, text_max) : kind == NUMBER ? write_number(to, text) : write_time(to, text);
    if (to)
        *to++ = '"';
    return to;
}

/* limit: the end of the room. */
static char *write_row(char *to, const char *limit, const Column *columns, Py_ssize_t count, Py_ssize_t row, int are_json,
                       Py_ssize_t text_max)
{
    for (const Column *column = columns; to && column < columns + count; column++) {
        Text text;
        if (!find_value(column, row, &text) || limit - to <= column->head_size + text.size + MORE_BYTES)
            return NULL;
        if (are_json && text.at)
            open_json(&text);
        to = write_value(write_bytes(to, column->head, column->head_size), &text, column->kind, text_max);
    }
    if (to)
        *to++ = '}';
    return to;
}

static void release(Column *columns, Py_ssize_t count)
{
    for (Column *column = columns; column < columns + count; column++) {
        PyBuffer_Release(&column->valid);
        PyBuffer_Release(&column->ends);
        PyBuffer_Release(&column->bytes);
    }
}

static int get_buffer(PyObject *from, Py_buffer *buffer)
{
    return from == Py_None || !PyObject_GetBuffer(from, buffer, PyBUF_SIMPLE);
}

/* `column` is all zeros. Returns 0 with an error set where it is none of so many rows. */
static int read_column(PyObject *given, Py_ssize_t rows, Column *column)
{
    PyObject *valid, *ends, *bytes;
    if (!PyTuple_Check(given))
        return PyErr_Format(PyExc_ValueError, "expected a tuple for each column") != NULL;
    if (!PyArg_ParseTuple(given, "y#iOOOn", &column->head, &column->head_size, &column->kind, &valid, &ends, &bytes,
                          &column->first))
        return 0;
    if (!get_buffer(valid, &column->valid) || !get_buffer(ends, &column->ends) || !get_buffer(bytes, &column->bytes))
        return 0;
    if (column->kind < 0 || column->kind >= KINDS)
        return PyErr_Format(PyExc_ValueError, "expected a kind below %d", KINDS) != NULL;
    if (column->first < 0 || column->first > INT32_MAX || rows > INT32_MAX ||
        (rows && column->ends.len / (Py_ssize_t)sizeof(int32_t) < column->first + rows + 1) ||
        (column->valid.obj && column->valid.len < (column->first + rows + 7) / 8))
        return PyErr_Format(PyExc_ValueError, "expected buffers of %zd rows", rows) != NULL;
    return 1;
}

/* Returns room for all rows, or -1 where no 32 bits hold it. */
static Py_ssize_t room_for(const Column *columns, Py_ssize_t count, Py_ssize_t rows)
{
    Py_ssize_t room = rows;
    for (const Column *column = columns; rows && column < columns + count; column++) {
        int64_t size = (int64_t)end_before(column, rows) - end_before(column, 0);
        if (column->head_size > HEAD_BYTES_MAX)
            return -1;
        room += (size > 0 ? size : 0) + rows * (column->head_size + MORE_BYTES);
        if (room > INT32_MAX)
            return -1;
    }
    return room;
}

static PyObject *write_rows(const Column *columns, Py_ssize_t count, Py_ssize_t rows, int are_json, Py_ssize_t text_max)
{
    Py_ssize_t room = room_for(columns, count, rows);
    if (room < 0)
        Py_RETURN_NONE;
    PyObject *answer = NULL, *others = PyList_New(0), *bytes = PyBytes_FromStringAndSize(NULL, room);
    PyObject *ends = PyBytes_FromStringAndSize(NULL, (rows + 1) * (Py_ssize_t)sizeof(int32_t));
    if (others && bytes && ends) {
        char *start = PyBytes_AS_STRING(bytes), *to = start, *written;
        int32_t *end = (int32_t *)PyBytes_AS_STRING(ends);
        int failed = 0;
        *end++ = 0;
        for (Py_ssize_t row = 0; row < rows && !failed; row++) {
            if ((written = write_row(to, start + room, columns, count, row, are_json, text_max)))
                to = written;
            else {
                PyObject *place = PyLong_FromSsize_t(row);
                failed = !place || PyList_Append(others, place);
                Py_XDECREF(place);
            }
            *end++ = (int32_t)(to - start);
        }
        if (!failed && !_PyBytes_Resize(&bytes, to - start))
            answer = PyTuple_Pack(3, ends, bytes, others);
    }
    Py_XDECREF(others);
    Py_XDECREF(bytes);
    Py_XDECREF(ends);
    return answer;
}

static PyObject *write_texts(PyObject *module, PyObject *args)
{
    PyObject *given, *answer = NULL;
    Py_ssize_t rows, text_max, count, read = 0;
    int are_json;
    Column columns[COLUMNS_MAX];
    if (!PyArg_ParseTuple(args, "O!npn", &PyTuple_Type, &given, &rows, &are_json, &text_max))
        return NULL;
    count = PyTuple_GET_SIZE(given);
    if (count < 1 || rows < 0)
        return PyErr_Format(PyExc_ValueError, "expected columns of some rows");
    if (count > COLUMNS_MAX)
        Py_RETURN_NONE;
    memset(columns, 0, sizeof columns);
    while (read < count && read_column(PyTuple_GET_ITEM(given, read), rows, &columns[read]))
        read++;
    if (read == count)
        answer = write_rows(columns, count, rows, are_json, text_max);
    release(columns, count);
    return answer;
}

static PyMethodDef methods[] = {{"write_texts", write_texts, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_compared_texts", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compared_texts(void)
{
    return PyModule_Create(&definition);
}
