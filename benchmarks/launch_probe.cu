// What a GPU needs besides the work itself, in microseconds: for a kernel in a graph, for a turn of a loop in a graph, for threads
// that wait for one another inside a kernel, and for a load that waits for another.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 -o launch_probe benchmarks/launch_probe.cu && ./launch_probe
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define CHECK(call)                                                        \
    do {                                                                   \
        cudaError_t e = (call);                                            \
        if (e) printf("%s: %s\n", #call, cudaGetErrorString(e)), exit(1);  \
    } while (0)

constexpr int MANY = 200, ROUNDS = 20;

__global__ void nothing(int* out) {
    if (blockIdx.x == 1u << 30) *out = 1;
}

__global__ void count_down(cudaGraphConditionalHandle loop, int* left) {
    if (threadIdx.x + blockIdx.x == 0) cudaGraphSetConditional(loop, --*left > 0);
}

__global__ void fill(int* left, int value) { *left = value; }

__global__ void wait_often(int* gate, int times, int blocks, int pollers) {
    for (int k = 0; k < times; k++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            int arrived = atomicAdd(gate, 1) + 1, wanted = (k + 1) * blocks;
            if (pollers == 0)
                while (arrived < wanted) arrived = atomicAdd(gate, 0);
            else
                while (arrived < wanted) arrived = *(volatile int*)gate;
            __threadfence();
        }
        __syncthreads();
    }
}

__global__ void chase(const int* next, int steps, int* out) {
    int at = 0;
    for (int k = 0; k < steps; k++) at = next[at];
    *out = at;
}

float microseconds(const std::function<void(cudaStream_t)>& launch, cudaStream_t stream) {
    std::vector<float> taken;
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(cudaEventRecord(begin, stream));
        launch(stream);
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        taken.push_back(1e3f * ms);
    }
    std::sort(taken.begin(), taken.end());
    return taken[taken.size() / 2];
}

cudaGraph_t chain(int kernels, int blocks, int threads, int* out) {
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t last;
    for (int k = 0; k < kernels; k++) {
        cudaKernelNodeParams one = {};
        void* arguments[] = {&out};
        one.func = (void*)nothing, one.gridDim = dim3(blocks), one.blockDim = dim3(threads), one.kernelParams = arguments;
        cudaGraphNode_t node;
        CHECK(cudaGraphAddKernelNode(&node, graph, k ? &last : nullptr, k ? 1 : 0, &one));
        last = node;
    }
    return graph;
}

int main() {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    int sms = device.multiProcessorCount, *numbers;
    printf("%s, %d multiprocessors\n", device.name, sms);
    CHECK(cudaMalloc(&numbers, 1 << 20));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    for (int threads : {128, 512})
        for (int per : {1, 4, 16}) {
            cudaGraphExec_t run;
            CHECK(cudaGraphInstantiate(&run, chain(MANY, per * sms, threads, numbers), 0));
            float all = microseconds([&](cudaStream_t s) { CHECK(cudaGraphLaunch(run, s)); }, stream);
            printf("a kernel of a graph, %2d blocks of %3d threads per multiprocessor  %6.2f\n", per, threads, all / MANY);
        }
    for (int kernels : {0, 1, 3}) {  // of each turn, besides the one that asks
        cudaGraph_t graph;
        CHECK(cudaGraphCreate(&graph, 0));
        cudaGraphConditionalHandle loop;
        CHECK(cudaGraphConditionalHandleCreate(&loop, graph, 1, cudaGraphCondAssignDefault));
        cudaGraphNodeParams params = {};
        params.type = cudaGraphNodeTypeConditional;
        params.conditional.handle = loop, params.conditional.type = cudaGraphCondTypeWhile, params.conditional.size = 1;
        cudaGraphNode_t node;
        CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
        cudaGraph_t body = params.conditional.phGraph_out[0];
        cudaGraphNode_t last;
        for (int k = 0; k <= kernels; k++) {
            cudaKernelNodeParams one = {};
            void* arguments[] = {&numbers};
            void* asking[] = {&loop, &numbers};
            one.func = k < kernels ? (void*)nothing : (void*)count_down;
            one.gridDim = dim3(k < kernels ? 4 * sms : 1), one.blockDim = dim3(k < kernels ? 512 : 32);
            one.kernelParams = k < kernels ? arguments : asking;
            cudaGraphNode_t next;
            CHECK(cudaGraphAddKernelNode(&next, body, k ? &last : nullptr, k ? 1 : 0, &one));
            last = next;
        }
        cudaGraphExec_t run;
        CHECK(cudaGraphInstantiate(&run, graph, 0));
        float all = microseconds([&](cudaStream_t s) { fill<<<1, 1, 0, s>>>(numbers, MANY); CHECK(cudaGraphLaunch(run, s)); }, stream);
        printf("a turn of a loop in a graph, with %d kernels and one that asks             %6.2f\n", kernels, all / MANY);
    }
    for (int pollers : {0, 1})
        for (int threads : {128, 512, 1024})
            for (int per : {1, 2}) {
                int times = MANY, blocks = per * sms;
                float all = microseconds([&](cudaStream_t s) {
                    CHECK(cudaMemsetAsync(numbers, 0, 4, s));
                    wait_often<<<blocks, threads, 0, s>>>(numbers, times, blocks, pollers);
                }, stream);
                printf("%s, %d blocks of %4d threads per multiprocessor wait        %6.2f\n", pollers ? "reading" : "adding 0", per, threads, all / times);
            }
    for (size_t size : {16u << 10, 16u << 20, 1u << 30}) {  // first-level cache, second-level cache, memory
        int count = size / 128, *next;
        std::vector<int> order(count), host(size / 4, 0);
        for (int k = 0; k < count; k++) order[k] = k;
        for (int k = count - 1; k > 0; k--) std::swap(order[k], order[((long)rand() * 32768 + rand()) % (k + 1)]);
        for (int k = 0; k < count; k++) host[32l * order[k]] = 32 * order[(k + 1) % count];
        CHECK(cudaMalloc(&next, size));
        CHECK(cudaMemcpy(next, host.data(), size, cudaMemcpyHostToDevice));
        float all = microseconds([&](cudaStream_t s) { chase<<<1, 1, 0, s>>>(next, 4000, numbers); }, stream);
        printf("a load that waits for another, of %7zu kB                            %6.3f\n", size >> 10, all / 4000);
        CHECK(cudaFree(next));
    }
    return 0;
}
