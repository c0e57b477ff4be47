/* The part of a CUDA driver that does something, for machines without a GPU: kernels are translated to C (ptx.py), compiled, and
   carried out by one thread of a CPU, all of theirs one after the other. Included by stand_in_driver.c.

   Threads that meet (barriers, shuffles) are switched where they wait. Blocks run one after the other, but for kernels whose
   blocks wait for each other: those all run in turns. Graphs are carried out node by node, loops of theirs as often as they say.
   Nothing is found out about time. What is not there on a GPU either, like a barrier that not all come to, ends with a message. */
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xmmintrin.h>
#include "emulator.h"

static void stop(const char *why) { fprintf(stderr, "emulator: %s\n", why); _exit(86); }

/* --- memory: behind every array, which the compiler makes of whole pages, lies one that nobody may touch --- */
struct fence { void *memory, *mapped; size_t length; };
static struct fence *fences;
static size_t fences_made;

void *fenced(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), wanted = (size + 15) / 16 * 16, length = (wanted + page - 1) / page * page + page;
    u8 *mapped = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return NULL;
    mprotect(mapped + length - page, page, PROT_NONE);
    size_t k = 0;
    while (k < fences_made && fences[k].memory) k++;
    if (k == fences_made) fences = realloc(fences, ++fences_made * sizeof *fences);
    fences[k] = (struct fence){mapped + length - page - wanted, mapped, length};
    return fences[k].memory;
}

void unfenced(void *memory) {
    for (size_t k = 0; memory && k < fences_made; k++)
        if (fences[k].memory == memory) { munmap(fences[k].mapped, fences[k].length); fences[k].memory = NULL; return; }
}

static const char *running = "nothing";
static void beyond(int signal, siginfo_t *what, void *context) {
    struct fence *nearest = NULL;
    for (size_t k = 0; k < fences_made; k++)
        if (fences[k].memory && (u8 *)fences[k].memory <= (u8 *)what->si_addr && (!nearest || fences[k].memory > nearest->memory))
            nearest = &fences[k];
    fprintf(stderr, "emulator: %s touched %p", running, what->si_addr);
    if (nearest) {
        size_t size = (u8 *)nearest->mapped + nearest->length - (u8 *)nearest->memory - (size_t)sysconf(_SC_PAGESIZE);
        fprintf(stderr, ", %td bytes from the begin of an array of %zu bytes", (u8 *)what->si_addr - (u8 *)nearest->memory, size);
    }
    fprintf(stderr, "\n");
    _exit(86);
}

/* --- threads that wait --- */
struct warp { u32 alive, arrived, turn, ballot[2]; u32 value[2][32]; };
struct block { u32 alive, arrived, turn; struct warp *warps; u8 *shared; };
struct fibre {
    struct thread thread; /* first: what a kernel is handed is its fibre */
    void *stack_pointer;
    u8 *stack;
    u32 *waits_for, until_not; /* goes on once *waits_for is no longer until_not */
    int done;
    struct block *home;
    struct warp *warp;
    void (*kernel)(struct thread *, u8 **);
    u8 **params;
};
enum { STACK = 256 << 10 };
static struct fibre *fibres;
static u32 fibres_made;
static void *scheduler;
void switch_stacks(void **save, void *load);
__asm__(".text\n.globl switch_stacks\nswitch_stacks:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        "first_steps:\nmov %rbx,%rdi\njmp begin_fibre\n");
void first_steps(void);

static void give_way(struct fibre *me) { switch_stacks(&me->stack_pointer, scheduler); }

static void wait_while(struct fibre *me, u32 *place, u32 value) {
    while (*place == value) {
        me->waits_for = place;
        me->until_not = value;
        give_way(me);
    }
    me->waits_for = NULL;
}

static void open_if_all(struct block *b) {
    if (b->alive && b->arrived == b->alive) { b->arrived = 0; b->turn++; }
}

static void barrier(struct thread *t) {
    struct fibre *me = (struct fibre *)t;
    struct block *b = me->home;
    u32 turn = b->turn;
    b->arrived++;
    open_if_all(b);
    wait_while(me, &b->turn, turn);
}

/* All of a warp that are left hand something in and see what the others did. Two sets of places: who is ahead cannot overtake. */
static u32 meet(struct fibre *me, u32 value, u32 flag) {
    struct warp *w = me->warp;
    u32 turn = w->turn, side = turn & 1, lane = me->thread.index & 31;
    if (w->arrived == 0) w->ballot[side] = 0;
    w->value[side][lane] = value;
    w->ballot[side] |= (flag ? 1u : 0u) << lane;
    if (++w->arrived == w->alive) { w->arrived = 0; w->turn++; }
    wait_while(me, &w->turn, turn);
    return side;
}

static u32 shuffle(struct thread *t, int mode, u32 value, u32 lane, u32 clamp, u32 *taken) {
    struct fibre *me = (struct fibre *)t;
    s32 own = t->index & 31, low = (s32)((clamp >> 8) & 31), limit = (s32)(clamp & 31), from;
    s32 most = (own & low) | (limit & ~low & 31), least = own & low;
    u32 side = meet(me, value, 1);
    switch (mode) {
    case 0: from = own - (s32)lane; *taken = from >= most; break; /* up: the clamp is the lowest lane */
    case 1: from = own + (s32)lane; *taken = from <= most; break;
    case 2: from = own ^ (s32)lane; *taken = from <= most; break;
    default: from = least | ((s32)lane & ~low & 31); *taken = from <= most;
    }
    return *taken ? me->warp->value[side][from & 31] : value;
}

static u32 vote(struct thread *t, u32 flag) {
    struct fibre *me = (struct fibre *)t;
    u32 side = meet(me, 0, flag);
    return me->warp->ballot[side];
}

static void poll(struct thread *t) { give_way((struct fibre *)t); }
static void not_here(struct thread *t) { stop("a thread meets others in a kernel that was taken for one in which nobody does"); }
static const struct together MEETING = {barrier, shuffle, vote, poll, stop};
static const struct together ALONE = {not_here, (void *)not_here, (void *)not_here, not_here, stop};

__attribute__((used, visibility("hidden"))) void begin_fibre(struct fibre *me) {
    me->kernel(&me->thread, me->params);
    me->done = 1;
    me->home->alive--;
    open_if_all(me->home);
    struct warp *w = me->warp;
    if (--w->alive && w->arrived == w->alive) { w->arrived = 0; w->turn++; }
    for (;;) give_way(me);
}

static void make_fibres(u32 count) {
    if (count <= fibres_made) return;
    fibres = realloc(fibres, count * sizeof *fibres);
    for (; fibres_made < count; fibres_made++) {
        u8 *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) stop("no memory for threads");
        fibres[fibres_made].stack = stack;
    }
}

static u8 *shared_memory(u32 size) {
    size = (size + 127) / 64 * 64;
    return memset(aligned_alloc(64, size), 0xA5, size); /* nobody may count on zeros there */
}

/* Threads of ``number`` blocks from the one that is ``first``, in turns until all are done. */
static void run_together(void (*kernel)(struct thread *, u8 **), u8 **params, u32 first, u32 number, u32 blocks, u32 size, u32 shared) {
    u32 count = number * size, warps = (size + 31) / 32, left = count;
    make_fibres(count);
    struct block *homes = calloc(number, sizeof *homes);
    for (u32 b = 0; b < number; b++) {
        homes[b].alive = size;
        homes[b].warps = calloc(warps, sizeof(struct warp));
        homes[b].shared = shared_memory(shared);
        for (u32 k = 0; k < size; k++) {
            struct fibre *f = &fibres[b * size + k];
            u8 *stack = f->stack;
            *f = (struct fibre){.thread = {k, size, first + b, blocks, homes[b].shared, &MEETING}, .stack = stack, .home = &homes[b],
                                .warp = &homes[b].warps[k / 32], .kernel = kernel, .params = params};
            f->warp->alive++;
            void **top = (void **)(stack + STACK - 64);
            *--top = 0;
            *--top = (void *)first_steps; /* where the first switch returns to */
            top -= 6; /* r15 r14 r13 r12 rbx rbp */
            memset(top, 0, 6 * sizeof *top);
            top[4] = f;
            f->stack_pointer = top;
        }
    }
    while (left) {
        u32 moved = 0;
        for (u32 k = 0; k < count; k++) {
            struct fibre *f = &fibres[k];
            if (f->done || (f->waits_for && *f->waits_for == f->until_not)) continue;
            moved++;
            switch_stacks(&scheduler, f->stack_pointer);
            left -= f->done;
        }
        if (!moved) stop("threads wait for others that never come");
    }
    for (u32 b = 0; b < number; b++) { free(homes[b].warps); free(homes[b].shared); }
    free(homes);
}

/* --- modules --- */
struct module { char *text; void *library; };
struct function { struct module *module; char name[256]; void (*kernel)(struct thread *, u8 **); const u32 *facts; u32 shared; int sets_condition; };

static void translate(struct module *m) {
    static int number;
    char base[4096], command[20000];
    snprintf(base, sizeof base, "%s/emulated_%d_%d", getenv("MODULES"), (int)getpid(), number++);
    snprintf(command, sizeof command, "%s.ptx", base);
    FILE *file = fopen(command, "w");
    if (!file) stop("MODULES is no folder to write to");
    fputs(m->text, file);
    fclose(file);
    const char *here = getenv("EMULATOR"), *python = getenv("EMULATOR_PYTHON");
    snprintf(command, sizeof command,
             "env -u LD_LIBRARY_PATH sh -c '\"%s\" \"%s/ptx.py\" %s.ptx > %s.c && cc -w -O1 -fno-strict-aliasing -fwrapv -ffp-contract=off -mfma "
             "-fPIC -shared -I \"%s\" -o %s.so %s.c -lm'", python ? python : "python3", here, base, base, here, base, base);
    if (system(command)) stop("a module could not be translated");
    snprintf(command, sizeof command, "%s.so", base);
    m->library = dlopen(command, RTLD_NOW | RTLD_LOCAL);
    if (!m->library) stop(dlerror());
}

static void ready(struct function *f) {
    char name[512];
    if (f->kernel || f->sets_condition) return;
    if (!f->module->library) translate(f->module);
    f->kernel = dlsym(f->module->library, f->name);
    snprintf(name, sizeof name, "%s_facts", f->name);
    f->facts = dlsym(f->module->library, name);
    f->shared = *(u32 *)dlsym(f->module->library, "shared_size");
    if (!f->kernel || !f->facts) stop(f->name);
}

/* FLAGS names a file for kernels that left the range of floats: "NAME overflow invalid ...", a line each time. */
static void tell_flags(const char *name, unsigned state) {
    const char *place = getenv("FLAGS");
    if (!place || !(state & (0x1 | 0x4 | 0x8))) return;
    FILE *file = fopen(place, "a");
    if (!file) stop("FLAGS is no file to write to");
    fprintf(file, "%s%s%s%s\n", name, state & 0x8 ? " overflow" : "", state & 0x1 ? " invalid" : "", state & 0x4 ? " division" : "");
    fclose(file);
}

static void launch(struct function *f, u32 blocks, u32 size, u8 **params) {
    ready(f);
    static struct sigaction watch = {.sa_sigaction = beyond, .sa_flags = SA_SIGINFO};
    struct sigaction former;
    unsigned before = _mm_getcsr();
    running = f->name;
    sigaction(SIGSEGV, &watch, &former);
    _mm_setcsr((before & ~0x3fu) | 0x8040); /* as ftz has it */
    if (f->facts[1]) {
        run_together(f->kernel, params, 0, blocks, blocks, size, f->shared);
    } else if (f->facts[0]) {
        for (u32 b = 0; b < blocks; b++) run_together(f->kernel, params, b, 1, blocks, size, f->shared);
    } else {
        u8 *memory = shared_memory(f->shared);
        for (u32 b = 0; b < blocks; b++)
            for (u32 k = 0; k < size; k++) {
                struct thread t = {k, size, b, blocks, memory, &ALONE};
                f->kernel(&t, params);
            }
        free(memory);
    }
    tell_flags(f->name, _mm_getcsr());
    _mm_setcsr(before);
    sigaction(SIGSEGV, &former, NULL);
}

int cuModuleLoadData(struct module **out, const char *text) {
    struct module *m = calloc(1, sizeof *m);
    m->text = strdup(text);
    *out = m;
    return write_down(text);
}
int cuModuleLoadDataEx(struct module **out, const char *text, unsigned n, void *options, void *values) { return cuModuleLoadData(out, text); }
int cuModuleGetFunction(struct function **out, struct module *m, const char *name) {
    COUNT("cuModuleGetFunction");
    struct function *f = calloc(1, sizeof *f);
    f->module = m;
    f->sets_condition = strstr(m->text, ".version") == NULL; /* no text: the one kernel that comes compiled */
    snprintf(f->name, sizeof f->name, "%s", name);
    for (char *c = f->name; *c; c++) if (*c == '.' || *c == '$') stop("a kernel of a name that C does not know");
    *out = f;
    return 0;
}

int cuLaunchKernel(struct function *f, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, void *stream, u8 **params, void **extra) {
    COUNT("cuLaunchKernel");
    if (gy * gz * by * bz != 1 || !params) stop("a launch of a form that nobody has needed so far");
    launch(f, gx, bx, params);
    return 0;
}

/* --- graphs --- */
enum { MARK = 0x10F10F };
struct condition { int mark, go_on, at_first; };
struct graph;
struct node { struct function *function; u32 blocks, size; u8 **params; struct graph *body; struct condition *condition; };
struct graph { int count, room; struct node *nodes; };

static struct node *add(struct graph *g) {
    if (g->count == g->room) {
        g->room = g->room ? 2 * g->room : 16;
        g->nodes = realloc(g->nodes, g->room * sizeof *g->nodes);
    }
    struct node *n = &g->nodes[g->count++];
    memset(n, 0, sizeof *n);
    return n;
}
static void carry_out(struct graph *g) {
    for (int k = 0; k < g->count; k++) {
        struct node *n = &g->nodes[k];
        if (n->body) {
            while (n->condition->go_on) carry_out(n->body);
        } else if (n->function && n->function->sets_condition) { /* it is told the condition, and where the address of the counter is */
            struct condition *condition = *(struct condition **)n->params[0];
            if (condition->mark != MARK) stop("the kernel that sets conditions has other arguments");
            condition->go_on = ***(s32 ***)n->params[1] != 0;
        } else if (n->function) {
            launch(n->function, n->blocks, n->size, n->params);
        }
    }
}
static void set_conditions(struct graph *g) {
    for (int k = 0; k < g->count; k++)
        if (g->nodes[k].body) { g->nodes[k].condition->go_on = g->nodes[k].condition->at_first; set_conditions(g->nodes[k].body); }
}
int cuGraphCreate(struct graph **out, unsigned flags) { COUNT("cuGraphCreate"); *out = calloc(1, sizeof **out); return 0; }
int cuGraphAddEmptyNode(void **out, struct graph *g, void **before, size_t count) { add(g); *out = (void *)16; return 0; }
int cuGraphConditionalHandleCreate(struct condition **out, struct graph *g, void *context, unsigned first, unsigned flags) {
    *out = calloc(1, sizeof **out);
    (*out)->at_first = flags & 1 ? (int)first : 0;
    (*out)->mark = MARK;
    return 0;
}
int cuGraphAddKernelNode(void **out, struct graph *g, void **before, size_t count, char *parameters) {
    struct node *n = add(g);
    n->function = *(struct function **)parameters;
    n->blocks = *(unsigned *)(parameters + 8);
    n->size = *(unsigned *)(parameters + 20);
    if (n->blocks > most_blocks) most_blocks = n->blocks;
    u8 **given = *(u8 ***)(parameters + 40);
    ready(n->function);
    static const u32 of_condition[] = {0, 0, 2, 8, 8};
    const u32 *facts = n->function->sets_condition ? of_condition : n->function->facts;
    n->params = calloc(facts[2] + 1, sizeof *n->params);
    for (u32 k = 0; k < facts[2]; k++) n->params[k] = memcpy(malloc(facts[3 + k] + 8), given[k], facts[3 + k]);
    *out = (void *)16;
    return 0;
}
int cuGraphAddNode(void **out, struct graph *g, void **before, size_t count, char *parameters) {
    struct node *n = add(g);
    n->condition = *(struct condition **)(parameters + 16);
    n->body = calloc(1, sizeof *n->body);
    void **bodies = malloc(sizeof *bodies);
    bodies[0] = n->body;
    *(void ***)(parameters + 32) = bodies;
    *out = (void *)16;
    return 0;
}
int cuGraphInstantiate(struct graph **out, struct graph *g) { COUNT("cuGraphInstantiate"); *out = g; return 0; }
int cuGraphLaunch(struct graph *g, void *stream) { COUNT("cuGraphLaunch"); set_conditions(g); carry_out(g); return 0; }
