/*
 * A kernel in a shared library, as dcpcheck loads it with --kernel lib:FILE. Plain C99; needs nothing of dcpcheck but this
 * header. Define dcpcheck_describe() and dcpcheck_run(), build with -shared -fPIC, and
 *
 *     dcpcheck kernels lib:./mine.so              what the library declares
 *     dcpcheck run --kernel lib:./mine.so CASE    run it, and judge every element
 *
 * `dcpcheck ops OP` shows an op's tensors, params and contract options: all names below are those.
 */
#ifndef DCPCHECK_KERNEL_H
#define DCPCHECK_KERNEL_H

/* NOLINTBEGIN(modernize-*): it is C, and the advice is for C++ */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. dcpcheck refuses a library of another one. */
#define DCPCHECK_ABI_VERSION 1

#if defined(__GNUC__)
#define DCPCHECK_EXPORT __attribute__((visibility("default")))
#else
#define DCPCHECK_EXPORT
#endif

/* Where a kernel runs; a description may have both, one or-ed with the other. */
enum dcpcheck_device {
  DCPCHECK_HOST = 1, /* data is host memory, and dcpcheck_run() has written all when it returns */
  DCPCHECK_CUDA = 2  /* data is device memory; dcpcheck_run() queues on the stream and does not wait */
};

/* The type of an element. */
enum dcpcheck_dtype {
  DCPCHECK_U8 = 0,
  DCPCHECK_BF16 = 1, /* the upper half of an fp32 */
  DCPCHECK_E4M3 = 2, /* FP8 E4M3FN: no infinities, 0x7F and 0xFF are NaN */
  DCPCHECK_FP32 = 3,
  DCPCHECK_I32 = 4,
  DCPCHECK_I64 = 5,
  DCPCHECK_FP64 = 6 /* of what a reference says; kernels meet none */
};

/*
 * A tensor of the launch. A tensor that a case does not have is not in the list. Inputs, and outputs that lie in place on
 * them, hold their values; other outputs hold a pattern that tells what was not written. Inputs must not be written.
 */
typedef struct dcpcheck_tensor {
  const char* name;       /* as in the op; one for each cache group is called "<name>.<group>" */
  void* data;             /* element [0, ..., 0] */
  int32_t dtype;          /* enum dcpcheck_dtype */
  int32_t rank;           /* axes */
  const int64_t* shape;   /* elements along each axis; a cache: {kernel blocks, rows of one, bytes of a record} */
  const int64_t* strides; /* elements from one index to the next along each axis; a cache: bytes */
} dcpcheck_tensor;

/* The type of a scalar. */
enum dcpcheck_type {
  DCPCHECK_INTEGER = 0, /* sizes; flags as 0 and 1 */
  DCPCHECK_NUMBER = 1,  /* fp32, as an epsilon is */
  DCPCHECK_TEXT = 2     /* a choice of a param or of a contract option, by name */
};

/*
 * A number or word of the case:
 *   params               by their names ("hidden_size", "embeds_eps")
 *   contract options     "option.<name>": the value that the case has
 *   sizes of the launch  "T" rows (tokens, padding counted in), "live" rows without padding, "capacity" of slot maps and
 *                        top-k, "R" requests, "G" cache groups, "cached" tokens of all requests
 *   ranks                "tp" tensor-parallel size, "W" DCP world size, "I" interleave size in tokens
 *   cache groups         "<group>.block_size" (tokens, per rank), "<group>.kernel_block_size", "<group>.blocks", ...
 */
typedef struct dcpcheck_scalar {
  const char* name;
  int32_t type;     /* enum dcpcheck_type: which of the following holds */
  float number;     /* DCPCHECK_NUMBER, else 0 */
  int64_t integer;  /* DCPCHECK_INTEGER, else 0 */
  const char* text; /* DCPCHECK_TEXT, else NULL */
} dcpcheck_scalar;

/*
 * One launch, on one rank of a case. All that it points to lives until dcpcheck_run() returns (for CUDA: tensors' data until
 * the stream has come past the launch), and nothing of it may be kept.
 */
typedef struct dcpcheck_launch {
  int32_t device;                 /* DCPCHECK_HOST or DCPCHECK_CUDA */
  int32_t threads;                /* host: how many threads the kernel may use, 1 or more */
  int64_t rank;                   /* of tp ranks */
  const char* op;                 /* as described */
  const dcpcheck_tensor* tensors; /* in the op's order */
  size_t tensor_count;
  const dcpcheck_scalar* scalars; /* by name */
  size_t scalar_count;
  void* stream;        /* CUDA: a cudaStream_t, which may be capturing a graph; host: NULL */
  char* message;       /* for the reason of a skip or a refusal, ended by a 0 ... */
  size_t message_size; /* ... that is within so many bytes */
} dcpcheck_launch;

/* What dcpcheck_run() answers. Any other number is a wrong answer, which fails the case. */
enum dcpcheck_answer {
  DCPCHECK_OK = 0,     /* the launch was made: judge what it leaves */
  DCPCHECK_SKIP = 1,   /* the kernel is not for this case: it counts for nothing. `message` says why */
  DCPCHECK_REFUSED = 2 /* the launch failed, as CUDA refuses a grid: the case fails. `message` says why */
};

/*
 * A contract option that the kernel follows, and one value of it; further values are further entries. A kernel that is
 * given the case's value as the scalar "option.<name>" can follow several. Of an option that is in no entry the kernel
 * follows the default, which `dcpcheck ops` shows first. Cases with another value are skipped.
 *
 * One entry may be called DCPCHECK_PRESET: its value is one of the op's presets, which `dcpcheck ops` shows, too. The kernel
 * then follows the options that the preset names and requires what the preset does; an option in other entries is followed
 * as those say, whatever the preset has.
 */
#define DCPCHECK_PRESET "preset"

typedef struct dcpcheck_option {
  const char* name;
  const char* value;
} dcpcheck_option;

/*
 * What a case must be like for the kernel. `that` is a condition on the scalars that are no DCPCHECK_NUMBER:
 * "hidden_size % 8 == 0 && T <= 65535", "mla_layout == 'fp8'"; C's operators, min, max and ceil_div, in 64 bits. `say`
 * finishes the sentence "it requires ..." for people; NULL: `that` is shown. Cases for which it does not hold are skipped.
 */
typedef struct dcpcheck_requirement {
  const char* that;
  const char* say;
} dcpcheck_requirement;

/* What a library has. */
typedef struct dcpcheck_description {
  int32_t abi_version; /* DCPCHECK_ABI_VERSION; the first member in every version */
  int32_t devices;     /* enum dcpcheck_device, one or both */
  const char* op;      /* whose kernel it is: "fused_norm_rope" */
  const char* name;    /* of the kernel, for people */
  const char* doc;     /* a line on it; may be NULL */
  const dcpcheck_option* options;
  size_t option_count;
  const char* const* tensors; /* that the kernel knows: cases with others are skipped. NULL: all of the op */
  size_t tensor_count;
  const dcpcheck_requirement* requirements;
  size_t requirement_count;
} dcpcheck_description;

/* What the library has. Called once, when it is loaded. The description lives as long as the library; never NULL. */
DCPCHECK_EXPORT const dcpcheck_description* dcpcheck_describe(void);

/*
 * Makes one launch, and answers with an enum dcpcheck_answer. May be called from several threads at once, each with a launch
 * of its own. The thread rounds to nearest, with subnormal numbers, whatever the library did when it was loaded, and must
 * be left so: a kernel that changes the mode and does not put it back fails the case. No exception may leave it.
 */
DCPCHECK_EXPORT int dcpcheck_run(const dcpcheck_launch* launch);

/* The tensor called `name`; NULL where the case has none. */
static inline const dcpcheck_tensor* dcpcheck_find_tensor(const dcpcheck_launch* launch, const char* name) {
  for (size_t i = 0; i < launch->tensor_count; ++i)
    if (strcmp(launch->tensors[i].name, name) == 0) return &launch->tensors[i];
  return NULL;
}

/* The scalar called `name`; NULL where the case has none. */
static inline const dcpcheck_scalar* dcpcheck_find_scalar(const dcpcheck_launch* launch, const char* name) {
  for (size_t i = 0; i < launch->scalar_count; ++i)
    if (strcmp(launch->scalars[i].name, name) == 0) return &launch->scalars[i];
  return NULL;
}

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-*) */

#endif /* DCPCHECK_KERNEL_H */
