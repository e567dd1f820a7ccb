/* Hashes the texts of a column where they stand in Arrow's buffers: XXH64 and SipHash-2-4, see _text_hashes.pyi.

   Sources: the specification of xxHash; Aumasson and Bernstein, "SipHash: a fast short-input PRF". All ends are checked, so
   nothing is read outside of the buffers that are given. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define PRIME_1 0x9E3779B185EBCA87u
#define PRIME_2 0xC2B2AE3D27D4EB4Fu
#define PRIME_3 0x165667B19E3779F9u
#define PRIME_4 0x85EBCA77C2B2AE63u
#define PRIME_5 0x27D4EB2F165667C5u
#define KEY_BYTES 16

static inline uint64_t rotated(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

/* The number whose lowest byte comes first; of at most eight bytes. */
static inline uint64_t number_at(const unsigned char *at, int size)
{
    uint64_t number = 0;
    for (int n = 0; n < size; n++)
        number |= (uint64_t)at[n] << 8 * n;
    return number;
}

static inline uint64_t xx_round(uint64_t lane, uint64_t word)
{
    return rotated(lane + word * PRIME_2, 31) * PRIME_1;
}

static uint64_t xxhash(const unsigned char *at, Py_ssize_t size, uint64_t seed)
{
    const unsigned char *end = at + size;
    uint64_t mixed = seed + PRIME_5;
    if (size >= 32) {
        uint64_t lanes[4] = {seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1};
        for (; end - at >= 32; at += 32)
            for (int n = 0; n < 4; n++)
                lanes[n] = xx_round(lanes[n], number_at(at + 8 * n, 8));
        mixed = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18);
        for (int n = 0; n < 4; n++)
            mixed = (mixed ^ xx_round(0, lanes[n])) * PRIME_1 + PRIME_4;
    }
    mixed += (uint64_t)size;
    for (; end - at >= 8; at += 8)
        mixed = rotated(mixed ^ xx_round(0, number_at(at, 8)), 27) * PRIME_1 + PRIME_4;
    if (end - at >= 4) {
        mixed = rotated(mixed ^ number_at(at, 4) * PRIME_1, 23) * PRIME_2 + PRIME_3;
        at += 4;
    }
    for (; at < end; at++)
        mixed = rotated(mixed ^ *at * PRIME_5, 11) * PRIME_1;
    mixed = (mixed ^ mixed >> 33) * PRIME_2;
    mixed = (mixed ^ mixed >> 29) * PRIME_3;
    return mixed ^ mixed >> 32;
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotated(v[1], 13) ^ v[0];
    v[3] = rotated(v[3], 16) ^ v[2];
    v[0] = rotated(v[0], 32) + v[3];
    v[2] += v[1];
    v[3] = rotated(v[3], 21) ^ v[0];
    v[1] = rotated(v[1], 17) ^ v[2];
    v[2] = rotated(v[2], 32);
}

static inline void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

/* As pandas has it, which mixes once more. */
static uint64_t siphash(const unsigned char *at, Py_ssize_t size, const unsigned char *key)
{
    const unsigned char *end = at + size;
    uint64_t one = number_at(key, 8), two = number_at(key + 8, 8);
    uint64_t v[4] = {one ^ 0x736F6D6570736575u, two ^ 0x646F72616E646F6Du, one ^ 0x6C7967656E657261u, two ^ 0x7465646279746573u};
    for (; end - at >= 8; at += 8)
        sip_word(v, number_at(at, 8));
    sip_word(v, number_at(at, (int)(end - at)) | (uint64_t)size << 56);
    v[2] ^= 0xFF;
    for (int n = 0; n < 4; n++)
        sip_round(v);
    uint64_t mixed = v[0] ^ v[1] ^ v[2] ^ v[3];
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
    return mixed ^ mixed >> 31;
}

/* seeds: of each row; NULL: the hash is SipHash by the key. Returns 0 where the ends are none of these bytes. */
static int hash_rows(const Py_buffer *ends, const Py_buffer *bytes, Py_ssize_t first, Py_ssize_t rows, const char *seeds,
                     const unsigned char *key, char *hashes)
{
    const char *at = (const char *)ends->buf + first * (Py_ssize_t)sizeof(int32_t);
    for (Py_ssize_t row = 0; row < rows; row++, at += sizeof(int32_t)) {
        int32_t place[2];
        uint64_t seed = 0, hash;
        memcpy(place, at, sizeof place);
        if (place[0] < 0 || place[1] < place[0] || place[1] > bytes->len)
            return 0;
        const unsigned char *text = place[1] ? (const unsigned char *)bytes->buf + place[0] : (const unsigned char *)"";
        if (seeds)
            memcpy(&seed, seeds + row * (Py_ssize_t)sizeof seed, sizeof seed);
        hash = seeds ? xxhash(text, place[1] - place[0], seed) : siphash(text, place[1] - place[0], key);
        memcpy(hashes + row * (Py_ssize_t)sizeof hash, &hash, sizeof hash);
    }
    return 1;
}

static PyObject *hash_column(PyObject *args, int by_key)
{
    Py_buffer ends, bytes, more;
    Py_ssize_t first, rows;
    PyObject *hashes = NULL;
    if (!PyArg_ParseTuple(args, "y*y*nny*", &ends, &bytes, &first, &rows, &more))
        return NULL;
    if (first < 0 || first > INT32_MAX || rows < 0 || rows > INT32_MAX ||
        (rows && ends.len / (Py_ssize_t)sizeof(int32_t) < first + rows + 1) ||
        more.len != (by_key ? KEY_BYTES : rows * (Py_ssize_t)sizeof(uint64_t)))
        PyErr_SetString(PyExc_ValueError, "expected the buffers of so many rows, and a seed of each or a key");
    else if ((hashes = PyBytes_FromStringAndSize(NULL, rows * (Py_ssize_t)sizeof(uint64_t))) &&
             !hash_rows(&ends, &bytes, first, rows, by_key ? NULL : more.buf, more.buf, PyBytes_AS_STRING(hashes))) {
        Py_CLEAR(hashes);
        PyErr_SetString(PyExc_ValueError, "expected ends inside of the bytes");
    }
    PyBuffer_Release(&ends);
    PyBuffer_Release(&bytes);
    PyBuffer_Release(&more);
    return hashes;
}

static PyObject *xxhash_texts(PyObject *module, PyObject *args)
{
    return hash_column(args, 0);
}

static PyObject *siphash_texts(PyObject *module, PyObject *args)
{
    return hash_column(args, 1);
}

static PyMethodDef methods[] = {
    {"xxhash_texts", xxhash_texts, METH_VARARGS, NULL},
    {"siphash_texts", siphash_texts, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_text_hashes", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__text_hashes(void)
{
    return PyModule_Create(&definition);
}
