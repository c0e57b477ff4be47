/* A CUDA driver without a GPU, for machine_code.py: memory is the host's, kernels are not run, and the text of every module
   that is loaded is written to the folder MODULES. It says it is a Hopper chip, and how often it was asked for what
   (host_time.py), and how many blocks of threads the largest kernel of a graph has. Compiled with CARRY_OUT it carries kernels out
   (emulator.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING(name) int name(void) { COUNT(#name); return 0; }
#define SOMETHING(name) int name(void **out) { COUNT(#name); *out = (void *)16; return 0; }

/* One counter for each place that counts. */
#define COUNT(name) do { static struct counter here = {name, 0, 0, NULL}; count(&here); } while (0)
struct counter { const char *name; long number; int listed; struct counter *next; };
static struct counter *counters;
static unsigned most_blocks;

static void count(struct counter *here) {
    here->number++;
    if (!here->listed) { here->listed = 1; here->next = counters; counters = here; }
}
long counted(const char *name) {
    long sum = 0;
    for (struct counter *c = counters; c; c = c->next) if (strncmp(c->name, name, strlen(name)) == 0) sum += c->number;
    return sum;
}
void count_anew(void) { most_blocks = 0; for (struct counter *c = counters; c; c = c->next) c->number = 0; }
unsigned blocks(void) { return most_blocks; }

static int write_down(const char *text) {
    static int number = 0;
    char path[4096];
    snprintf(path, sizeof path, "%s/%04d.ptx", getenv("MODULES"), number++);
    FILE *file = fopen(path, "w");
    if (!file) return 1;
    fputs(text, file);
    return fclose(file);
}

int cuDriverGetVersion(int *out) { *out = 12080; return 0; }
int cuDeviceGetCount(int *out) { *out = 1; return 0; }
int cuDeviceGet(int *out, int ordinal) { *out = 0; return 0; }
int cuDeviceGetName(char *out, int size, int device) { snprintf(out, size, "none"); return 0; }
int cuDeviceGetAttribute(int *out, int attribute, int device) {
    switch (attribute) {
    case 1: case 2: case 3: *out = 1024; break;   /* threads of a block */
    case 8: *out = 49152; break;                  /* shared memory of a block */
    case 10: *out = 32; break;                    /* threads of a warp */
    case 16: *out = getenv("MULTIPROCESSORS") ? atoi(getenv("MULTIPROCESSORS")) : 132; break;
    case 38: *out = 50 << 20; break;              /* second-level cache */
    case 39: *out = 2048; break;                  /* threads of a multiprocessor */
    case 75: *out = 9; break;                     /* compute capability 9.0 */
    case 76: *out = 0; break;
    case 81: case 97: *out = 232448; break;       /* shared memory of a multiprocessor, of a block that asks */
    default: *out = 1;
    }
    return 0;
}
int cuMemGetInfo_v2(size_t *available, size_t *total) { *available = *total = (size_t)140 << 30; return 0; }
#ifdef CARRY_OUT
void *fenced(size_t size); /* emulator.c */
void unfenced(void *memory);
int cuMemAlloc_v2(void **out, size_t size) { COUNT("cuMemAlloc_v2"); *out = fenced(size); return *out == NULL; }
int cuMemFree_v2(void *memory) { unfenced(memory); return 0; }
int cuMemFreeAsync(void *memory, void *stream) { unfenced(memory); return 0; }
int cuMemFreeHost(void *memory) { unfenced(memory); return 0; }
#else
int cuMemAlloc_v2(void **out, size_t size) { COUNT("cuMemAlloc_v2"); *out = calloc(1, size + 256); return *out == NULL; }
int cuMemFree_v2(void *memory) { free(memory); return 0; }
int cuMemFreeAsync(void *memory, void *stream) { free(memory); return 0; }
int cuMemFreeHost(void *memory) { free(memory); return 0; }
#endif
int cuMemAllocAsync(void **out, size_t size, void *stream) { return cuMemAlloc_v2(out, size); }
int cuMemAllocManaged(void **out, size_t size, unsigned flags) { return cuMemAlloc_v2(out, size); }
int cuMemAllocHost_v2(void **out, size_t size) { return cuMemAlloc_v2(out, size); }
int cuMemcpyDtoH_v2(void *to, void *from, size_t size) { COUNT("cuMemcpyDtoH_v2"); memcpy(to, from, size); return 0; }
int cuMemcpyHtoD_v2(void *to, void *from, size_t size) { COUNT("cuMemcpyHtoD_v2"); memcpy(to, from, size); return 0; }
int cuMemcpyDtoD_v2(void *to, void *from, size_t size) { memcpy(to, from, size); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, void *from, size_t size, void *stream) { COUNT("cuMemcpyDtoHAsync_v2"); memcpy(to, from, size); return 0; }
int cuMemcpyHtoDAsync_v2(void *to, void *from, size_t size, void *stream) { COUNT("cuMemcpyHtoDAsync_v2"); memcpy(to, from, size); return 0; }
int cuMemsetD8_v2(void *to, unsigned char value, size_t count) { memset(to, value, count); return 0; }
int cuMemsetD32_v2(unsigned *to, unsigned value, size_t count) { while (count) to[--count] = value; return 0; }
int cuPointerGetAttribute(void *out, int attribute, void *pointer) { return 1; }
int cuFuncGetAttribute(int *out, int attribute, void *function) { *out = 32; return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void *f, int threads, size_t shared) { *out = 4; return 0; }
int cuEventElapsedTime(float *out, void *a, void *b) { *out = 1; return 0; }
int cuGetErrorName(int error, const char **out) { *out = "none"; return 0; }
int cuGetErrorString(int error, const char **out) { *out = "none"; return 0; }
#ifdef CARRY_OUT
#include "emulator.c"
#else
int cuModuleLoadData(void **out, const char *text) { *out = (void *)16; return write_down(text); }
int cuModuleLoadDataEx(void **out, const char *text, unsigned n, void *options, void *values) { return cuModuleLoadData(out, text); }
int cuModuleGetFunction(void **out, void *module, const char *name) { COUNT("cuModuleGetFunction"); *out = (void *)16; return 0; }
int cuGraphAddKernelNode(void **out, void *graph, void **before, size_t count, char *parameters) {
    unsigned wide = *(unsigned *)(parameters + 8); /* gridDimX */
    if (wide > most_blocks) most_blocks = wide;
    *out = (void *)16;
    return 0;
}
int cuGraphAddNode(void **out, void *graph, void **before, size_t count, char *parameters) {
    static void *bodies[8] = {(void *)16, (void *)16, (void *)16, (void *)16, (void *)16, (void *)16, (void *)16, (void *)16};
    *(void ***)(parameters + 32) = bodies; /* phGraph_out of a conditional node */
    *out = (void *)16;
    return 0;
}
SOMETHING(cuGraphAddEmptyNode) SOMETHING(cuGraphConditionalHandleCreate) SOMETHING(cuGraphCreate) SOMETHING(cuGraphInstantiate)
NOTHING(cuGraphLaunch) NOTHING(cuLaunchKernel)
#endif

SOMETHING(cuCtxCreate_v2) SOMETHING(cuCtxGetCurrent) SOMETHING(cuDeviceGetDefaultMemPool) SOMETHING(cuDevicePrimaryCtxRetain)
SOMETHING(cuEventCreate) SOMETHING(cuStreamCreate)
NOTHING(cuInit) NOTHING(cuCtxSetCurrent) NOTHING(cuCtxSetLimit) NOTHING(cuCtxSynchronize) NOTHING(cuEventDestroy)
NOTHING(cuEventRecord) NOTHING(cuEventSynchronize) NOTHING(cuFuncSetAttribute) NOTHING(cuGraphDestroy)
NOTHING(cuGraphExecDestroy) NOTHING(cuMemAdvise) NOTHING(cuMemPoolSetAttribute)
NOTHING(cuMemPoolTrimTo) NOTHING(cuStreamDestroy_v2) NOTHING(cuStreamSynchronize) NOTHING(cuStreamWaitEvent)
NOTHING(cuImportExternalMemory) NOTHING(cuImportExternalSemaphore) NOTHING(cuExternalMemoryGetMappedBuffer)
NOTHING(cuExternalMemoryGetMappedMipmappedArray) NOTHING(cuMipmappedArrayGetLevel) NOTHING(cuSurfObjectCreate)
NOTHING(cuSignalExternalSemaphoresAsync) NOTHING(cuWaitExternalSemaphoresAsync) NOTHING(cuLinkCreate_v2)
NOTHING(cuLinkAddData_v2) NOTHING(cuLinkAddFile_v2) NOTHING(cuLinkComplete) NOTHING(cuLinkDestroy)
