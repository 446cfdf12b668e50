// Marks what is compiled for both machines: the codecs, which kernels use on the device and the harness on the host.
#pragma once

#ifdef __CUDACC__
#define DCPCHECK_HD __host__ __device__
#else
#define DCPCHECK_HD
#endif
