/* Opens flat Protobuf messages, many at a time: see _flat_protobuf.pyi and decision record 51.

   As _flat_avro.c does: checked against the value's end, all or nothing, and written as the Python way writes it. A field
   that the message's type does not have, or one of another wire type than its own, is left to protobuf. */
#include "flat_json.h"

#define SHORT_BYTES_MAX 5 /* of a tag and of a length; protobuf reads none that is longer */
#define NUMBER_MAX 1024 /* of a field that is found without a search */
enum { SIGNED_64, SIGNED_32, ZIGZAG_64, ZIGZAG_32, UNSIGNED_64, UNSIGNED_32, BOOLEAN, STRING, OF_FOUR, OF_EIGHT, BYTES, NAMED, KINDS };
/* The last four are only passed over. */
static const unsigned char wire_types[KINDS] = {0, 0, 0, 0, 0, 0, 0, 2, 5, 1, 2, 0};

typedef struct {
    int kind;
    int place; /* in what is written; -1: in none */
    int is_known;
} Field;

typedef struct {
    Field by_number[NUMBER_MAX];
    Value unset[FIELDS_MAX]; /* what is written of a field that is not there */
    Py_ssize_t written;
} Plan;

static int read_number(uint64_t found, int kind, Value *value)
{
    int64_t number = kind == ZIGZAG_64 || kind == ZIGZAG_32 ? unzigzag(found) : (int64_t)found;
    value->kind = kind == UNSIGNED_64 || kind == UNSIGNED_32 ? UNSIGNED : kind == BOOLEAN ? TRUTH : WHOLE;
    value->number = number;
    switch (kind) {
    case SIGNED_32:
    case ZIGZAG_32:
        return number >= INT32_MIN && number <= INT32_MAX;
    case UNSIGNED_32:
        return found <= UINT32_MAX;
    case BOOLEAN:
        return found <= 1;
    default:
        return 1;
    }
}

static int read_message(const unsigned char *at, const unsigned char *end, const void *known, Value *values)
{
    const Plan *plan = known;
    memcpy(values, plan->unset, (size_t)plan->written * sizeof(Value));
    while (at != end) {
        uint64_t tag, found;
        Value value;
        const unsigned char *begin = at;
        if (!(at = read_varint(at, end, &tag)) || at - begin > SHORT_BYTES_MAX || tag >> 3 >= NUMBER_MAX)
            return 0;
        const Field *field = &plan->by_number[tag >> 3];
        if (!field->is_known || (tag & 7) != wire_types[field->kind])
            return 0;
        if (field->kind == OF_FOUR || field->kind == OF_EIGHT) {
            Py_ssize_t size = field->kind == OF_FOUR ? 4 : 8;
            if (end - at < size)
                return 0;
            at += size;
            continue;
        }
        begin = at;
        if (!(at = read_varint(at, end, &found)))
            return 0;
        if (wire_types[field->kind] == 2) {
            if (at - begin > SHORT_BYTES_MAX || found > (uint64_t)(end - at) || (field->kind == STRING && !is_plain((const char *)at, (Py_ssize_t)found)))
                return 0;
            value = (Value){TEXT, (const char *)at, (Py_ssize_t)found, 0};
            at += found;
        } else if (field->kind != NAMED && !read_number(found, field->kind, &value))
            return 0;
        if (field->place >= 0)
            values[field->place] = value; /* of one that stands twice the last counts */
    }
    return 1;
}

/* Returns 0 with an error set where the plan is none. */
static int read_plan(PyObject *fields, Py_ssize_t written, void *empty)
{
    Plan *plan = empty;
    int filled[FIELDS_MAX] = {0};
    memset(plan, 0, sizeof(*plan));
    plan->written = written;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(fields); n++) {
        int number, kind, place, has_presence;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(fields, n), "iipi", &number, &kind, &has_presence, &place))
            return 0;
        if (number < 1 || number >= NUMBER_MAX || kind < 0 || kind >= KINDS || place < -1 || place >= written ||
            (place >= 0 && kind > STRING) || plan->by_number[number].is_known)
            return PyErr_Format(PyExc_ValueError, "expected fields with a number below %d of their own, a kind and a place",
                                NUMBER_MAX) != NULL;
        plan->by_number[number] = (Field){kind, place, 1};
        if (place < 0)
            continue;
        if (filled[place]++)
            return PyErr_Format(PyExc_ValueError, "expected one field at each place") != NULL;
        plan->unset[place] = (Value){ABSENT, "", 0, 0};
        if (!has_presence)
            plan->unset[place].kind = kind == STRING ? TEXT : kind == BOOLEAN ? TRUTH : WHOLE;
    }
    return all_are_filled(filled, written);
}

static PyObject *open_flat(PyObject *module, PyObject *args)
{
    Plan plan;
    return open_by_plan(args, read_plan, read_message, &plan);
}

static PyMethodDef methods[] = {{"open_flat", open_flat, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_flat_protobuf", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__flat_protobuf(void)
{
    return PyModule_Create(&definition);
}
