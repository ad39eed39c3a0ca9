#!/usr/bin/env python3
"""Exchanges arrays with NumPy, PyTorch and JAX by DLPack, in both directions.

    exchange.py LIBRARY     a shared library of devtensor

Checks values, dtypes, layouts, that no element is copied, and that every tensor is given up once.
Frameworks that Python does not have are skipped and counted.
"""
import ctypes
import gc
import sys
from ctypes import c_char_p, c_int, c_int32, c_int64, c_void_p

lib = ctypes.CDLL(sys.argv[1])
api = ctypes.pythonapi
counts = {"passed": 0, "failed": 0, "skipped": 0}
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool"]
F64 = DTYPES.index("float64")
VALUES = [[0, 1, 2], [1, 0, 1]]
IF_NEEDED, ALWAYS, NEVER = 0, 1, 2


# ---- devtensor by ctypes ----
class Shape(ctypes.Structure):
    _fields_ = [("ndim", c_int), ("dim", c_int64 * 8)]


class Ctx(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class Stats(ctypes.Structure):
    _fields_ = [("copies", c_int64 * 6), ("work", c_int64 * 3), ("arrays", c_int64),
                ("blocks", c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", c_int32 * 2), ("ndim", c_int32),
                ("dtype", ctypes.c_uint8 * 4), ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", c_void_p), ("deleter", c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("manager", c_void_p), ("deleter", c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


def declare(library, name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


for name, result, arguments in [
    ("from_host", c_void_p, (c_void_p, Shape, c_int, Ctx)), ("astype", c_void_p, (c_void_p, c_int)),
    ("slice", c_void_p, (c_void_p, c_int, c_int64, c_int64, c_int64)), ("t", c_void_p, (c_void_p,)),
    ("broadcast_to", c_void_p, (c_void_p, Shape)), ("reshape", c_void_p, (c_void_p, Shape)),
    ("fill", c_void_p, (c_void_p, ctypes.c_double)), ("data", c_void_p, (c_void_p,)),
    ("shape_of", Shape, (c_void_p,)), ("dtype_of", c_int, (c_void_p,)),
    ("to_host", c_int, (c_void_p, c_void_p, c_int64)), ("retain", c_void_p, (c_void_p,)),
    ("release", None, (c_void_p,)), ("discard", None, (c_void_p,)), ("error", c_char_p, ()),
    ("clear_error", None, ()), ("get_stats", Stats, ()), ("set_logger", None, (c_void_p, c_void_p)),
    ("from_dlpack", c_void_p, (c_void_p,)), ("from_dlpack_versioned", c_void_p, (c_void_p,)),
    ("to_dlpack", c_void_p, (c_void_p,)), ("to_dlpack_versioned", c_void_p, (c_void_p, c_int)),
]:
    declare(lib, "dvt_" + name, result, *arguments)
# Capsules are passed by address, because a destructor may not take a reference.
declare(api, "PyCapsule_New", ctypes.py_object, c_void_p, c_void_p, c_void_p)
declare(api, "PyCapsule_GetPointer", c_void_p, c_void_p, c_void_p)
declare(api, "PyCapsule_GetName", c_char_p, c_void_p)
declare(api, "PyCapsule_SetName", c_int, c_void_p, c_void_p)
declare(api, "PyCapsule_IsValid", c_int, c_void_p, c_void_p)
# Capsules keep the address of their name.
NAMES = {name: ctypes.create_string_buffer(name) for name in
         (b"dltensor", b"dltensor_versioned", b"used_dltensor", b"used_dltensor_versioned")}
LAYOUT = {b"dltensor": Managed, b"dltensor_versioned": Versioned}


def address(name):
    return ctypes.addressof(NAMES[name])


@ctypes.PYFUNCTYPE(None, c_void_p)
def end_capsule(capsule):
    """Gives up a tensor that no consumer took."""
    for name, layout in LAYOUT.items():
        if api.PyCapsule_IsValid(capsule, address(name)):
            pointer = api.PyCapsule_GetPointer(capsule, address(name))
            ctypes.CFUNCTYPE(None, c_void_p)(layout.from_address(pointer).deleter)(pointer)


class Refused(BufferError):
    pass


def checked(handle):
    if not handle:
        message = lib.dvt_error().decode()
        lib.dvt_clear_error()
        raise Refused(message)
    return handle


class Array:
    """Owns an array of devtensor."""

    def __init__(self, handle):
        self.handle = None # for __del__ after a failure
        self.handle = lib.dvt_retain(checked(handle))
        lib.dvt_discard(self.handle)

    def __del__(self):
        lib.dvt_release(self.handle)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if max_version is not None and max_version[0] >= 1:
            name = b"dltensor_versioned"
            choice = IF_NEEDED if copy is None else ALWAYS if copy else NEVER
            pointer = lib.dvt_to_dlpack_versioned(self.handle, choice)
        else:
            name, pointer = b"dltensor", lib.dvt_to_dlpack(self.handle)
        return api.PyCapsule_New(checked(pointer), address(name),
                                 ctypes.cast(end_capsule, c_void_p))

    def view(self, function, *arguments):
        return Array(getattr(lib, "dvt_" + function)(self.handle, *arguments))

    def shape(self):
        shape = lib.dvt_shape_of(self.handle)
        return tuple(shape.dim[:shape.ndim])

    def dtype(self):
        return DTYPES[lib.dvt_dtype_of(self.handle)]

    def data(self):
        return lib.dvt_data(self.handle)

    def values(self):
        wide = self.view("astype", F64)
        n = 1
        for extent in self.shape():
            n *= extent
        numbers = (ctypes.c_double * n)()
        assert lib.dvt_to_host(wide.handle, numbers, 8 * n) == 0
        return list(numbers)


class Unversioned:
    """The same array for consumers of version 0."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


def shape_of(*extents):
    return Shape(len(extents), (c_int64 * 8)(*extents))


def ours(values, dtype):
    flat = [float(v) for row in values for v in row]
    host = (ctypes.c_double * len(flat))(*flat)
    made = lib.dvt_from_host(host, shape_of(len(values), len(values[0])), F64, Ctx(1, 0))
    array = Array(made).view("astype", DTYPES.index(dtype))
    del made
    return array


def take(producer, versioned=True):
    """Imports an array; the capsule is consumed when that succeeds."""
    capsule = None
    if versioned:
        try:
            capsule = producer.__dlpack__(max_version=(1, 1))
        except TypeError: # an older library
            pass
    if capsule is None:
        capsule = producer.__dlpack__()
    name = api.PyCapsule_GetName(id(capsule))
    call = lib.dvt_from_dlpack if name == b"dltensor" else lib.dvt_from_dlpack_versioned
    array = Array(call(api.PyCapsule_GetPointer(id(capsule), address(name))))
    api.PyCapsule_SetName(id(capsule), address(b"used_" + name))
    return array


# ---- the other libraries ----
class NumPy:
    name = "numpy"
    views = True

    def __init__(self):
        import numpy
        self.numpy = numpy
        self.take = numpy.from_dlpack

    def make(self, values, dtype):
        return None if dtype == "bfloat16" else self.numpy.array(values, dtype=dtype)

    def list(self, x):
        return x.astype("float64").ravel().tolist()

    def dtype(self, x):
        return str(x.dtype)

    def data(self, x):
        return x.ctypes.data

    def strided(self, x):
        return [x.T, x[:, ::2], x[1:], x[::-1], x[:, ::-1].T, x[0, 1:2].reshape(())]

    def fill(self, x, value):
        x[...] = value


class PyTorch:
    name = "torch"
    views = True

    def __init__(self):
        import torch
        self.torch = torch
        self.take = torch.from_dlpack

    def make(self, values, dtype):
        return self.torch.tensor(values, dtype=getattr(self.torch, dtype))

    def list(self, x):
        return x.to(self.torch.float64).flatten().tolist()

    def dtype(self, x):
        return str(x.dtype).replace("torch.", "")

    def data(self, x):
        return x.data_ptr()

    def strided(self, x):
        return [x.T, x[:, ::2], x[1:], x[0, 1]]

    def fill(self, x, value):
        x.fill_(value)


class JAX:
    name = "jax"
    views = False # its arrays are compact and never change

    def __init__(self):
        import jax
        import jax.dlpack
        import jax.numpy
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        self.take = jax.dlpack.from_dlpack

    def make(self, values, dtype):
        return self.jax.numpy.array(values, dtype=dtype)

    def list(self, x):
        return x.astype("float64").ravel().tolist()

    def dtype(self, x):
        return str(x.dtype)

    def data(self, x):
        return x.unsafe_buffer_pointer()

    def strided(self, x):
        return []


# ---- tests ----
def check(ok, what):
    counts["passed" if ok else "failed"] += 1
    if not ok:
        print("FAIL " + what)


def alive():
    gc.collect()
    stats = lib.dvt_get_stats()
    return stats.arrays, stats.blocks


def imports(them, dtype, what):
    theirs = them.make(VALUES, dtype)
    flat = [float(v) for row in VALUES for v in row]
    if dtype == "bool":
        flat = [float(v != 0) for v in flat]
    for versioned in (True, False):
        x = take(theirs, versioned)
        check(x.dtype() == dtype, f"{what}: the dtype is {x.dtype()}")
        check(x.shape() == (2, 3), f"{what}: the shape is {x.shape()}")
        check(x.values() == flat, f"{what}: the values are {x.values()}")
        if them.views:
            check(x.data() == them.data(theirs), f"{what}: the import copied")
            them.fill(theirs, 1)
            check(x.values() == [1.0] * 6, f"{what}: our array does not see their writes")
            lib.dvt_fill(x.handle, 0)
            check(them.list(theirs) == [0.0] * 6, f"{what}: their array does not see our writes")
            theirs = them.make(VALUES, dtype)
    for view in them.strided(theirs):
        x = take(view)
        check(x.values() == them.list(view) and x.shape() == tuple(view.shape),
              f"{what}: a view {tuple(view.shape)} gives {x.values()}")
    x = take(theirs) # our array keeps their memory
    del theirs
    gc.collect()
    junk = [them.make(VALUES, dtype) for _ in range(50)]
    check(x.values() == flat and len(junk) == 50, f"{what}: their memory was freed early")


def exports(them, dtype, what):
    flat = [float(v) for row in VALUES for v in row]
    if dtype == "bool":
        flat = [float(v != 0) for v in flat]
    for kind in (lambda array: array, Unversioned):
        x = ours(VALUES, dtype)
        y = them.take(kind(x))
        check(them.dtype(y) == dtype, f"{what}: the dtype is {them.dtype(y)}")
        check(tuple(y.shape) == (2, 3), f"{what}: the shape is {tuple(y.shape)}")
        check(them.list(y) == flat, f"{what}: the values are {them.list(y)}")
        if them.views:
            check(them.data(y) == x.data(), f"{what}: the export copied")
            lib.dvt_fill(x.handle, 1)
            check(them.list(y) == [1.0] * 6, f"{what}: their array does not see our writes")
            transposed = x.view("t")
            z = them.take(kind(transposed))
            check(tuple(z.shape) == (3, 2) and them.data(z) == x.data(),
                  f"{what}: a transposed view was copied")
            del z
        del x # their array keeps our memory
        gc.collect()
        junk = [ours(VALUES, dtype) for _ in range(50)]
        check(them.list(y) == ([1.0] * 6 if them.views else flat) and len(junk) == 50,
              f"{what}: our memory was freed early")
        del y


def corners(them, what):
    x = ours(VALUES, "float32")
    end = -2**63 # DVT_END
    backward = x.view("slice", 1, -1, end, -1)
    check(them.list(them.take(backward)) == [2, 1, 0, 1, 0, 1], f"{what}: a reversed view")
    check(them.list(them.take(Unversioned(backward))) == [2, 1, 0, 1, 0, 1],
          f"{what}: a reversed view, version 0")
    wide = x.view("slice", 0, 0, 1, 1).view("broadcast_to", shape_of(2, 3))
    check(them.list(them.take(Unversioned(wide))) == [0, 1, 2, 0, 1, 2],
          f"{what}: a broadcast view, version 0")
    empty = them.take(x.view("slice", 0, 0, 0, 1))
    check(tuple(empty.shape) == (0, 3), f"{what}: no elements")
    scalar = x.view("slice", 0, 1, 2, 1).view("slice", 1, 2, 3, 1).view("reshape", shape_of())
    check(tuple(them.take(scalar).shape) == () and them.list(them.take(scalar)) == [1],
          f"{what}: no axes")
    empty = take(them.make([[], []], "float32"))
    check(empty.shape() == (2, 0) and empty.values() == [], f"{what}: import without elements")
    capsule = x.__dlpack__(max_version=(1, 1)) # no consumer takes these two
    capsule = x.__dlpack__()
    del capsule
    for dtype in ("int16", "complex64"):
        try:
            take(them.make(VALUES, dtype))
            check(False, f"{what}: {dtype} was not refused")
        except Refused as refused:
            check(dtype in str(refused), f"{what}: {refused}")


def numpy_alone(them):
    np = them.numpy
    fixed = np.arange(6, dtype="float32")
    fixed.flags.writeable = False
    x = take(fixed)
    check(x.data() != fixed.ctypes.data and x.values() == list(range(6)),
          "numpy: an array for reading only is copied")
    x = ours(VALUES, "int32")
    wide = np.from_dlpack(x.view("broadcast_to", shape_of(4, 2, 3)))
    check(not wide.flags.writeable and wide.strides[0] == 0 and wide.ctypes.data == x.data(),
          "numpy: a broadcast view is for reading only")
    copied = np.from_dlpack(x, copy=True)
    check(copied.ctypes.data != x.data() and copied.ravel().tolist() == [0, 1, 2, 1, 0, 1],
          "numpy: copy=True")
    try:
        np.from_dlpack(x.view("slice", 0, -1, -2**63, -1), copy=False)
        check(False, "numpy: copy=False of a reversed view was not refused")
    except Refused as refused:
        check("negative strides" in str(refused), f"numpy: {refused}")
    unaligned = np.frombuffer(bytes(13), dtype="uint8")[1:].view("float32")
    try:
        take(unaligned)
        check(False, "numpy: an address that is not aligned was not refused")
    except (Refused, BufferError) as refused:
        check("aligned" in str(refused), f"numpy: {refused}")


def exchange(them):
    before = alive()
    for dtype in DTYPES:
        if them.make(VALUES, dtype) is None:
            continue
        imports(them, dtype, f"{them.name} to devtensor, {dtype}")
        exports(them, dtype, f"devtensor to {them.name}, {dtype}")
    corners(them, them.name)
    if them.name == "numpy":
        numpy_alone(them)
    check(alive() == before, f"{them.name}: {alive()} arrays and blocks exist, expected {before}")


def main():
    lib.dvt_set_logger(None, None)
    for kind in (NumPy, PyTorch, JAX):
        try:
            them = kind()
        except ImportError:
            counts["skipped"] += 1
            print(f"SKIP dlpack with {kind.name}: {sys.executable} does not have it")
            continue
        exchange(them)
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    sys.exit(counts["failed"] != 0)


main()
