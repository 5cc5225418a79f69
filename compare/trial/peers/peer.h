// The part that all peers written in C share: arguments, tapes, clocks and JSON (docs/peers.md).
//
// A peer defines a timer of its own, which begins with a peer_timer, and a peer_structure; its main
// returns peer_main(&structure, argc, argv).
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct peer_timer {
    int64_t deadline, operation; // the operation that last armed it
    int32_t id;
} peer_timer;

typedef struct peer_run peer_run;

typedef struct peer_structure {
    const char *name, *description;
    size_t timer_size;                    // of the peer's own timer, whose memory is 0 at first
    void *(*create)(int64_t start);       // empty, with its clock at `start`
    void (*destroy)(void *structure);
    void (*add)(void *structure, void *timer);    // by its deadline; `operation` is unique
    void (*remove)(void *structure, void *timer); // a pending timer
    void (*rearm)(void *structure, void *timer);  // a pending timer, which has its new deadline;
                                                  // NULL: it is removed and added
    void (*advance)(void *structure, int64_t now, peer_run *run); // peer_fire what is due, in order
    int64_t (*next_wakeup)(void *structure);      // when to advance next; something is pending
} peer_structure;

typedef struct peer_tape {
    int64_t operations, id_space, first_time, phases;
    const int64_t *first, *time, *deadline;
    const int8_t *op;
    const int32_t *id;
} peer_tape;

struct peer_run {
    const peer_structure *structure;
    const peer_tape *tape;
    void *state;
    void **pending, **free, **blocks; // by id; timers to be used again; of PEER_BLOCK timers each
    int64_t free_count, block_count, block_used, now, before, count, expired;
    bool may_be_due;
    int64_t (*rows)[4]; // operation, before, clock and fired_at of each expiry
    int64_t room;       // rows that there is room for
};

// from shared.py: begin
// A tape begins with it and a zero byte.
#define PEER_MAGIC "WHLTAPE"
// Of a tape; in bytes.
enum { PEER_VERSION = 1, PEER_HEADER = 64, PEER_ALIGNMENT = 8 };
// Where the int64s of the header are.
enum { PEER_VERSION_AT = 8, PEER_OPERATIONS_AT = 24, PEER_ID_SPACE_AT = 32, PEER_FIRST_TIME_AT = 40, PEER_PHASES_AT = 48 };
// Operations.
enum { PEER_START = 0, PEER_CANCEL = 1, PEER_REARM = 2, PEER_ARM = 3 };
// The bins of a histogram: enough for 2^63 ns.
enum { PEER_BINS = 496 };
// Defaults of options.
enum { PEER_ROUNDS = 7, PEER_WARM_UP = 5, PEER_THREADS_ROUNDS = 1, PEER_PRODUCERS = 2 };
// What a row of `threads` says.
enum { PEER_REFUSED = 0, PEER_DONE = 1, PEER_RAN = 2 };
// A unit of `threads`; how long it waits for a call, and then for one that is too many.
enum { PEER_UNIT_NS = 1000000, PEER_GRACE_MS = 5000, PEER_SETTLE_MS = 50 };
// The exit code for a bad command or tape.
enum { PEER_BAD_INPUT = 2 };
// Problems of a tape, after its path.
#define PEER_NO_TAPE "is not a tape"
#define PEER_CUT "is cut short"
// The usage.
#define PEER_COMMANDS "describe | check TAPE OUT | time TAPE"
// The members of a line of `time` and `threads`.
#define PEER_COMMON "{\"round\": %" PRId64 ", \"phase\": %" PRId64 ", \"operations\": %" PRId64 ", \"expired\": %" PRId64 ", \"wall_ns\": %" PRId64 ", \"process_ns\": %" PRId64 ""
// And those that `threads` may leave out.
#define PEER_OWN ", \"thread_ns\": %" PRId64 ", \"memory_bytes\": %" PRId64 ""
// from shared.py: end

enum { PEER_BLOCK = 1024 };

static _Noreturn inline void peer_fail(const char *name, const char *path, const char *problem) {
    fprintf(stderr, "%s: %s %s\n", name, path, problem);
    exit(PEER_BAD_INPUT);
}

static inline void *peer_grown(void *memory, size_t size) {
    if ((memory = realloc(memory, size ? size : 1))) return memory;
    fprintf(stderr, "no memory for %zu bytes\n", size);
    exit(3);
}

// Called by `advance` for each timer that fires. The timer may be used again at once.
static inline void peer_fire(peer_run *run, void *fired, int64_t fired_at) {
    peer_timer *timer = fired;
    if (run->expired == run->room) {
        run->room = run->room ? 2 * run->room : PEER_BLOCK;
        run->rows = peer_grown(run->rows, run->room * sizeof *run->rows);
    }
    int64_t *row = run->rows[run->expired++];
    row[0] = timer->operation, row[1] = run->before, row[2] = run->now, row[3] = fired_at;
    if (run->pending[timer->id] == timer) run->pending[timer->id] = NULL;
    run->free[run->free_count++] = timer;
    run->count--;
}

static inline size_t peer_up(size_t offset) {
    return (offset + PEER_ALIGNMENT - 1) / PEER_ALIGNMENT * PEER_ALIGNMENT;
}

static inline peer_tape peer_read(const char *name, const char *path) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status)) peer_fail(name, path, "cannot be read");
    size_t size = status.st_size;
    if (size < PEER_HEADER) peer_fail(name, path, PEER_NO_TAPE);
    const char *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) peer_fail(name, path, "cannot be mapped");
    if (memcmp(data, PEER_MAGIC, sizeof PEER_MAGIC)) peer_fail(name, path, PEER_NO_TAPE);
    const int64_t *header = (const int64_t *)data;
    if (header[PEER_VERSION_AT / 8] != PEER_VERSION) peer_fail(name, path, "is a tape of another version than 1");
    size_t n = header[PEER_OPERATIONS_AT / 8], phases = header[PEER_PHASES_AT / 8];
    size_t time = PEER_HEADER + 8 * phases, op = time + 8 * n;
    size_t id = peer_up(op + n), deadline = peer_up(id + 4 * n);
    if (size < deadline + 8 * n) peer_fail(name, path, PEER_CUT);
    return (peer_tape){
        .operations = n, .id_space = header[PEER_ID_SPACE_AT / 8],
        .first_time = header[PEER_FIRST_TIME_AT / 8], .phases = phases,
        .first = header + PEER_HEADER / 8, .time = (const int64_t *)(data + time), .op = (const int8_t *)(data + op),
        .id = (const int32_t *)(data + id), .deadline = (const int64_t *)(data + deadline)};
}

static inline void *peer_new_timer(peer_run *run) {
    if (run->free_count) return run->free[--run->free_count];
    if (run->block_used == PEER_BLOCK || !run->block_count) {
        int64_t blocks = run->block_count + 1;
        run->blocks = peer_grown(run->blocks, blocks * sizeof *run->blocks);
        run->free = peer_grown(run->free, blocks * PEER_BLOCK * sizeof *run->free);
        size_t size = PEER_BLOCK * run->structure->timer_size;
        run->blocks[run->block_count++] = memset(peer_grown(NULL, size), 0, size);
        run->block_used = 0;
    }
    char *block = run->blocks[run->block_count - 1];
    return block + run->block_used++ * run->structure->timer_size;
}

static inline void peer_advance(peer_run *run, int64_t moment, int64_t before) {
    run->now = moment;
    run->before = before;
    run->structure->advance(run->state, moment, run);
}

static inline void peer_operations(peer_run *run, int64_t from, int64_t to) {
    const peer_tape *tape = run->tape;
    const peer_structure *structure = run->structure;
    for (int64_t k = from; k < to; k++) {
        if (tape->time[k] > run->now || run->may_be_due) peer_advance(run, tape->time[k], k);
        run->may_be_due = false;
        int32_t id = tape->id[k];
        int8_t op = tape->op[k];
        peer_timer *timer = op != PEER_START ? run->pending[id] : NULL;
        bool is_pending = timer != NULL, in_place = is_pending && structure->rearm && op != PEER_CANCEL;
        if (is_pending && !in_place) structure->remove(run->state, timer);
        if (op == PEER_CANCEL) {
            if (!is_pending) continue;
            run->pending[id] = NULL;
            run->free[run->free_count++] = timer;
            run->count--;
            continue;
        }
        if (!is_pending) {
            if (op == PEER_REARM) continue;
            run->pending[id] = timer = peer_new_timer(run);
            timer->id = id;
            run->count++;
        }
        timer->deadline = tape->deadline[k];
        timer->operation = k;
        if (in_place) structure->rearm(run->state, timer);
        else structure->add(run->state, timer);
        run->may_be_due = timer->deadline <= run->now;
    }
}

static inline void peer_advance_once(peer_run *run) {
    int64_t wakeup = run->structure->next_wakeup(run->state);
    peer_advance(run, wakeup > run->now ? wakeup : run->now, run->tape->operations);
}

static inline void peer_drain(peer_run *run) {
    while (run->count) peer_advance_once(run);
}

static inline void peer_begin(peer_run *run, const peer_structure *structure, const peer_tape *tape) {
    *run = (peer_run){.structure = structure, .tape = tape, .now = tape->first_time,
                      .rows = run->rows, .room = run->room};
    run->state = structure->create(tape->first_time);
    run->pending = calloc(tape->id_space + 1, sizeof *run->pending);
}

static inline void peer_end(peer_run *run) {
    run->structure->destroy(run->state);
    for (int64_t block = 0; block < run->block_count; block++) free(run->blocks[block]);
    free(run->blocks), free(run->free), free(run->pending);
}

static inline int64_t peer_clock(clockid_t clock) { // ns
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static inline int64_t peer_resident(const char *field) { // in bytes, or 0
    int64_t bytes = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, field, strlen(field))) bytes = 1024 * atoll(line + strlen(field));
    if (file) fclose(file);
    return bytes;
}

// Time each operation, or each advance of the drain, on its own, and print the counts: eight bins in
// each power of two of ns.
static inline void peer_singly(peer_run *run, int64_t from, int64_t to, bool drains, int64_t *bins) {
    memset(bins, 0, PEER_BINS * sizeof *bins);
    for (int64_t k = from; drains ? run->count > 0 : k < to; k++) {
        int64_t started = peer_clock(CLOCK_MONOTONIC);
        if (drains) peer_advance_once(run);
        else peer_operations(run, k, k + 1);
        uint64_t ns = peer_clock(CLOCK_MONOTONIC) - started;
        int exponent = ns < 16 ? 0 : 60 - __builtin_clzll(ns);
        bins[8 * exponent + (ns >> exponent)]++;
    }
}

static inline void peer_time(
    const peer_structure *structure, const peer_tape *tape, int64_t rounds, int64_t warm_up, bool singly) {
    peer_run run = {.room = tape->operations + 1};
    run.rows = peer_grown(NULL, run.room * sizeof *run.rows);
    memset(run.rows, 1, run.room * sizeof *run.rows); // so that its pages exist
    int64_t before = peer_resident("VmRSS:"), memory = -1, bins[PEER_BINS];
    FILE *peak = fopen("/proc/self/clear_refs", "w");
    if (peak) fputs("5", peak), fclose(peak);
    for (int64_t round = -warm_up; round < rounds; round++) {
        peer_begin(&run, structure, tape);
        for (int64_t phase = 0; phase <= tape->phases; phase++) {
            bool drains = phase == tape->phases, last = phase + 1 == tape->phases;
            int64_t from = drains ? 0 : tape->first[phase];
            int64_t to = drains ? 0 : last ? tape->operations : tape->first[phase + 1];
            int64_t expired = run.expired, wall = peer_clock(CLOCK_MONOTONIC);
            int64_t thread = peer_clock(CLOCK_THREAD_CPUTIME_ID);
            int64_t process = peer_clock(CLOCK_PROCESS_CPUTIME_ID);
            if (singly) peer_singly(&run, from, to, drains, bins);
            else if (drains) peer_drain(&run);
            else peer_operations(&run, from, to);
            process = peer_clock(CLOCK_PROCESS_CPUTIME_ID) - process;
            thread = peer_clock(CLOCK_THREAD_CPUTIME_ID) - thread;
            wall = peer_clock(CLOCK_MONOTONIC) - wall;
            if (drains && memory < 0) {
                memory = peer_resident("VmHWM:") - before;
                if (memory < 0) memory = 0;
            }
            if (round < 0) continue;
            printf(PEER_COMMON, round, phase, to - from, run.expired - expired, wall, process);
            printf(PEER_OWN, thread, memory);
            for (int bin = 0; singly && bin < PEER_BINS; bin++)
                printf("%s%" PRId64, bin ? ", " : ", \"histogram\": [", bins[bin]);
            puts(singly ? "]}" : "}");
        }
        peer_end(&run);
    }
}

static inline int peer_main(const peer_structure *structure, int argc, char **argv) {
    const char *command = argc > 1 ? argv[1] : "", *name = structure->name;
    if (!strcmp(command, "describe") && argc == 2) return puts(structure->description) < 0;
    if (!strcmp(command, "check") && argc == 4) {
        peer_tape tape = peer_read(name, argv[2]);
        peer_run run = {0};
        peer_begin(&run, structure, &tape);
        peer_operations(&run, 0, tape.operations);
        peer_drain(&run);
        FILE *file = fopen(argv[3], "wb");
        size_t rows = run.expired;
        if (!file || fwrite(run.rows, sizeof *run.rows, rows, file) != rows || fclose(file))
            peer_fail(name, argv[3], "cannot be written");
        return 0;
    }
    if (!strcmp(command, "time") && argc >= 3) {
        int64_t rounds = PEER_ROUNDS, warm_up = PEER_WARM_UP, histogram = 0;
        for (int k = 3; k + 1 < argc; k += 2) {
            if (!strcmp(argv[k], "--rounds")) rounds = atoll(argv[k + 1]);
            if (!strcmp(argv[k], "--warm-up")) warm_up = atoll(argv[k + 1]);
            if (!strcmp(argv[k], "--histogram")) histogram = atoll(argv[k + 1]);
        }
        peer_tape tape = peer_read(name, argv[2]);
        peer_time(structure, &tape, rounds, warm_up, histogram);
        return 0;
    }
    fprintf(stderr, "usage: %s %s\n", name, PEER_COMMANDS);
    return PEER_BAD_INPUT;
}
