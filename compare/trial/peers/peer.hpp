// The part that all peers written in C++ share: arguments, tapes, clocks and JSON (docs/peers.md).
//
// A structure has a type Node, which inherits from Timer, and these members:
//     explicit Structure(int64_t start);      empty, with its clock at `start`
//     void add(Node *);                       by its deadline; `operation` is unique
//     void remove(Node *);                    a pending node
//     void rearm(Node *);                     optional: a pending node, which has its new deadline;
//                                             otherwise it is removed and added
//     void advance(int64_t now, Fire fire);   call fire(node, fired_at) for what is due, in order
//     int64_t next_wakeup();                  when to advance next; something is pending
#pragma once
#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace peer {

struct Timer {
    int64_t deadline, operation; // the operation that last armed it
    int32_t id;
};

// from shared.py: begin
// A tape begins with it and a zero byte.
constexpr char MAGIC[] = "WHLTAPE";
// Of a tape; in bytes.
constexpr int64_t VERSION = 1, HEADER = 64, ALIGNMENT = 8;
// Where the int64s of the header are.
constexpr int64_t VERSION_AT = 8, OPERATIONS_AT = 24, ID_SPACE_AT = 32, FIRST_TIME_AT = 40, PHASES_AT = 48;
// Operations.
constexpr int64_t START = 0, CANCEL = 1, REARM = 2, ARM = 3;
// The bins of a histogram: enough for 2^63 ns.
constexpr int64_t BINS = 496;
// Defaults of options.
constexpr int64_t ROUNDS = 7, WARM_UP = 5, THREADS_ROUNDS = 1, PRODUCERS = 2;
// What a row of `threads` says.
constexpr int64_t REFUSED = 0, DONE = 1, RAN = 2;
// A unit of `threads`; how long it waits for a call, and then for one that is too many.
constexpr int64_t UNIT_NS = 1000000, GRACE_MS = 5000, SETTLE_MS = 50;
// The exit code for a bad command or tape.
constexpr int64_t BAD_INPUT = 2;
// Problems of a tape, after its path.
constexpr char NO_TAPE[] = "is not a tape", CUT[] = "is cut short";
// The usage.
constexpr char COMMANDS[] = "describe | check TAPE OUT | time TAPE";
// The members of a line of `time` and `threads`.
constexpr char COMMON[] = "{\"round\": %ld, \"phase\": %ld, \"operations\": %ld, \"expired\": %ld, \"wall_ns\": %ld, \"process_ns\": %ld";
// And those that `threads` may leave out.
constexpr char OWN[] = ", \"thread_ns\": %ld, \"memory_bytes\": %ld";
// from shared.py: end

struct Tape {
    int64_t operations, id_space, first_time, phases;
    const int64_t *first, *time, *deadline;
    const int8_t *op;
    const int32_t *id;
};

[[noreturn]] inline void fail(const char *name, const char *path, const char *problem) {
    std::fprintf(stderr, "%s: %s %s\n", name, path, problem);
    std::exit(BAD_INPUT);
}

inline Tape read_tape(const char *name, const char *path) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status)) fail(name, path, "cannot be read");
    size_t size = status.st_size;
    if (size < HEADER) fail(name, path, NO_TAPE);
    auto data = static_cast<const char *>(
        mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0));
    if (data == MAP_FAILED) fail(name, path, "cannot be mapped");
    if (std::memcmp(data, MAGIC, sizeof MAGIC)) fail(name, path, NO_TAPE);
    auto cell = [&](int64_t at) { return reinterpret_cast<const int64_t *>(data + at); };
    if (*cell(VERSION_AT) != VERSION) fail(name, path, "is a tape of another version than 1");
    Tape tape{*cell(OPERATIONS_AT), *cell(ID_SPACE_AT), *cell(FIRST_TIME_AT), *cell(PHASES_AT),
              cell(HEADER), {}, {}, {}, {}};
    auto up = [](size_t offset) { return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; };
    size_t n = tape.operations, time = HEADER + 8 * tape.phases, op = time + 8 * n;
    size_t id = up(op + n), deadline = up(id + 4 * n);
    if (size < deadline + 8 * n) fail(name, path, CUT);
    tape.time = reinterpret_cast<const int64_t *>(data + time);
    tape.op = reinterpret_cast<const int8_t *>(data + op);
    tape.id = reinterpret_cast<const int32_t *>(data + id);
    tape.deadline = reinterpret_cast<const int64_t *>(data + deadline);
    return tape;
}

struct Row {
    int64_t operation, before, clock, fired_at;
};

struct Rows { // of `check`
    std::vector<Row> rows;
    void add(int64_t operation, int64_t before, int64_t clock, int64_t fired_at) {
        rows.push_back({operation, before, clock, fired_at});
    }
    int64_t count() const { return rows.size(); }
};

struct Operations { // of `time`: the operations of the expiries, in memory that was written before
    std::vector<int64_t> operations;
    int64_t expired = 0;
    void add(int64_t operation, int64_t, int64_t, int64_t) { operations[expired++] = operation; }
    int64_t count() const { return expired; }
};

struct Histogram { // of the times of single operations: bins of powers of two, eight in each
    std::vector<int64_t> counts = std::vector<int64_t>(BINS);
    void add(uint64_t ns) {
        int exponent = std::max(int(std::bit_width(ns)) - 4, 0);
        counts[8 * exponent + (ns >> exponent)]++;
    }
    void print() {
        while (counts.size() && !counts.back()) counts.pop_back();
        const char *comma = "";
        for (int64_t count : counts) std::printf("%s%ld", comma, count), comma = ", ";
    }
};

template <class Structure, class Out> struct Run {
    using Node = typename Structure::Node;
    const Tape &tape;
    Out &out;
    Structure structure;
    std::deque<Node> nodes;
    std::vector<Node *> free, pending; // the pending node of each id
    int64_t now, count = 0;
    bool may_be_due = false;

    Run(const Tape &tape, Out &out)
        : tape(tape), out(out), structure(tape.first_time), pending(tape.id_space),
          now(tape.first_time) {}

    void advance(int64_t moment, int64_t before) {
        structure.advance(moment, [&](Node *node, int64_t fired_at) {
            out.add(node->operation, before, moment, fired_at);
            if (pending[node->id] == node) pending[node->id] = nullptr;
            release(node);
        });
        now = moment;
    }

    void release(Node *node) {
        free.push_back(node);
        count--;
    }

    void operations(int64_t first, int64_t last) {
        for (int64_t k = first; k < last; k++) {
            if (tape.time[k] > now || may_be_due) advance(tape.time[k], k);
            may_be_due = false;
            int32_t id = tape.id[k];
            int8_t op = tape.op[k];
            Node *node = op == START ? nullptr : pending[id];
            constexpr bool can_rearm = requires { structure.rearm(node); };
            bool in_place = can_rearm && node && op != CANCEL;
            if (node && !in_place) structure.remove(node);
            if (op == CANCEL) {
                if (node) release(node), pending[id] = nullptr;
                continue;
            }
            if (!node) {
                if (op == REARM) continue;
                if (free.empty()) {
                    node = &nodes.emplace_back();
                } else {
                    node = free.back();
                    free.pop_back();
                }
                count++;
                node->id = id;
                pending[id] = node;
            }
            node->deadline = tape.deadline[k];
            node->operation = k;
            if constexpr (can_rearm) {
                if (in_place) structure.rearm(node); else structure.add(node);
            } else {
                structure.add(node);
            }
            may_be_due = tape.deadline[k] <= now;
        }
    }

    void advance_once() { advance(std::max(structure.next_wakeup(), now), tape.operations); }

    void drain() {
        while (count) advance_once();
    }
};

inline int64_t clock_ns(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

inline int64_t resident(const char *field) { // in bytes, or -1
    int64_t bytes = -1;
    if (FILE *file = std::fopen("/proc/self/status", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, file))
            if (!std::strncmp(line, field, std::strlen(field)))
                bytes = 1024 * std::atoll(line + std::strlen(field));
        std::fclose(file);
    }
    return bytes;
}

// Time each operation, or each advance of the drain, on its own.
template <class Run> Histogram singly(Run &run, int64_t first, int64_t last, bool drains) {
    Histogram histogram;
    for (int64_t k = first; drains ? run.count > 0 : k < last; k++) {
        int64_t started = clock_ns(CLOCK_MONOTONIC);
        if (drains) run.advance_once(); else run.operations(k, k + 1);
        histogram.add(clock_ns(CLOCK_MONOTONIC) - started);
    }
    return histogram;
}

template <class Structure>
int time(const Tape &tape, int64_t rounds, int64_t warm_up, bool with_histogram) {
    Operations out{std::vector<int64_t>(tape.operations + 1)};
    int64_t before = resident("VmRSS:"), memory = -1;
    if (FILE *file = std::fopen("/proc/self/clear_refs", "w")) std::fputs("5", file), std::fclose(file);
    for (int64_t round = -warm_up; round < rounds; round++) {
        out.expired = 0;
        auto run = std::make_unique<Run<Structure, Operations>>(tape, out);
        for (int64_t phase = 0; phase <= tape.phases; phase++) {
            bool drains = phase == tape.phases;
            int64_t first = drains ? 0 : tape.first[phase];
            int64_t last = drains ? 0 : phase + 1 < tape.phases ? tape.first[phase + 1] : tape.operations;
            int64_t expired = out.expired, wall = clock_ns(CLOCK_MONOTONIC);
            int64_t thread = clock_ns(CLOCK_THREAD_CPUTIME_ID);
            int64_t process = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
            Histogram histogram;
            if (with_histogram) histogram = singly(*run, first, last, drains);
            else if (drains) run->drain();
            else run->operations(first, last);
            process = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - process;
            thread = clock_ns(CLOCK_THREAD_CPUTIME_ID) - thread;
            wall = clock_ns(CLOCK_MONOTONIC) - wall;
            if (memory < 0 && drains) memory = std::max<int64_t>(resident("VmHWM:") - before, 0);
            if (round < 0) continue;
            std::printf(COMMON, round, phase, last - first, out.expired - expired, wall, process);
            std::printf(OWN, thread, memory);
            if (with_histogram) std::printf(", \"histogram\": ["), histogram.print(), std::printf("]");
            std::puts("}");
        }
    }
    return 0;
}

// ---- several threads, in real time: producers, and one thread that drives. A lock is around each
// structure; there is one, or as many as WHEELWORK_STRUCTURES says, which the producers share out.

template <class Structure> struct Producers {
    using Node = typename Structure::Node;
    struct Locked {
        std::mutex mutex;
        Structure structure{0};
        std::deque<Node> nodes;
        std::vector<Node *> free;
    };

    const Tape &tape;
    const int threads;
    const bool records;
    int64_t epoch = clock_ns(CLOCK_MONOTONIC);
    std::deque<Locked> locked;
    std::vector<Node *> pending; // of each id; under the lock
    std::vector<Row> rows;       // operation, what, begin, end: a call each, and then expiries
    std::atomic<int64_t> expired = 0, cancelled = 0;
    std::atomic<bool> ends = false;

    Producers(const Tape &tape, int threads, int structures, bool records)
        : tape(tape), threads(threads), records(records), locked(structures), pending(tape.id_space),
          rows(records ? 2 * tape.operations + 1000 : 0) {}

    int64_t now() const { return records ? clock_ns(CLOCK_MONOTONIC) : 0; }

    bool start(Locked &at, int64_t k) {
        int64_t ns = clock_ns(CLOCK_MONOTONIC) - epoch; // a unit is a millisecond; never early
        int64_t deadline = (ns + UNIT_NS - 1) / UNIT_NS + tape.deadline[k] - tape.time[k];
        std::lock_guard guard(at.mutex);
        Node *node;
        if (at.free.empty()) node = &at.nodes.emplace_back();
        else node = at.free.back(), at.free.pop_back();
        node->id = tape.id[k], node->operation = k, node->deadline = deadline;
        pending[node->id] = node;
        at.structure.add(node);
        return true;
    }

    bool cancel(Locked &at, int64_t k) {
        std::lock_guard guard(at.mutex);
        Node *&node = pending[tape.id[k]];
        if (!node) return false;
        at.structure.remove(node);
        at.free.push_back(node);
        node = nullptr;
        return true;
    }

    void produce(int number, int64_t first, int64_t last) {
        Locked &at = locked[number % locked.size()];
        int64_t took = 0;
        for (int64_t k = first; k < last; k++) {
            if (tape.id[k] % threads != number) continue;
            bool cancels = tape.op[k] == CANCEL;
            int64_t begin = now(), done = cancels ? cancel(at, k) : start(at, k);
            if (records) rows[k] = {k, done, begin, now()};
            took += cancels && done;
        }
        cancelled += took;
    }

    void drive() { // each millisecond; what is due is called without the lock
        std::vector<int64_t> due;
        while (!ends) {
            int64_t unit = (clock_ns(CLOCK_MONOTONIC) - epoch) / UNIT_NS;
            for (Locked &at : locked) {
                std::lock_guard guard(at.mutex);
                at.structure.advance(unit, [&](Node *node, int64_t) {
                    due.push_back(node->operation);
                    if (pending[node->id] == node) pending[node->id] = nullptr;
                    at.free.push_back(node);
                });
            }
            for (int64_t operation : due) {
                int64_t moment = now(), at = tape.operations + expired++;
                if (at < int64_t(rows.size())) rows[at] = {operation, RAN, moment, moment};
            }
            due.clear();
            timespec next{0, epoch + (unit + 1) * UNIT_NS};
            next.tv_sec = next.tv_nsec / 1'000'000'000, next.tv_nsec %= 1'000'000'000;
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
        }
    }

    void settle() { // until all has been called that was not cancelled, or the grace is over
        int64_t starts = std::count(tape.op, tape.op + tape.operations, START);
        auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
        for (int turn = 0; turn < GRACE_MS && expired + cancelled < starts; turn++) pause();
        for (int turn = 0; turn < SETTLE_MS; turn++) pause(); // for a call that is one too many
    }
};

template <class Structure>
int threads(const char *name, const Tape &tape, std::map<std::string, int64_t> given, const char *out) {
    const char *structures = std::getenv("WHEELWORK_STRUCTURES");
    for (int64_t round = -given["--warm-up"]; round < given["--rounds"]; round++) {
        int count = given["--threads"];
        Producers<Structure> run(tape, count, structures ? std::atoi(structures) : 1, out);
        std::thread driver([&] { run.drive(); });
        std::barrier gate(count + 1);
        std::vector<std::thread> producers;
        auto span = [&](int64_t phase) {
            return phase < tape.phases ? tape.first[phase] : tape.operations;
        };
        for (int number = 0; number < count; number++)
            producers.emplace_back([&, number] {
                for (int64_t phase = 0; phase < tape.phases; phase++) {
                    gate.arrive_and_wait();
                    run.produce(number, span(phase), span(phase + 1));
                    gate.arrive_and_wait();
                }
            });
        for (int64_t phase = 0; phase <= tape.phases; phase++) {
            int64_t expired = run.expired, wall = clock_ns(CLOCK_MONOTONIC);
            int64_t process = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
            if (phase == tape.phases) run.settle();
            else gate.arrive_and_wait(), gate.arrive_and_wait();
            process = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - process;
            wall = clock_ns(CLOCK_MONOTONIC) - wall;
            if (round < 0) continue;
            std::printf(COMMON, round, phase, span(phase + 1) - span(phase), run.expired - expired, wall, process);
            std::puts("}");
        }
        for (auto &producer : producers) producer.join();
        run.ends = true;
        driver.join();
        if (!out || round + 1 < given["--rounds"]) continue;
        size_t rows = std::min<size_t>(tape.operations + run.expired, run.rows.size());
        FILE *file = std::fopen(out, "wb");
        if (!file || std::fwrite(run.rows.data(), sizeof(Row), rows, file) != rows || std::fclose(file))
            fail(name, out, "cannot be written");
    }
    return 0;
}

template <class Structure> int main(const char *name, const char *description, int argc, char **argv) {
    std::string command = argc > 1 ? argv[1] : "";
    if (command == "describe") return std::puts(description) < 0;
    if (command == "check" && argc == 4) {
        Tape tape = read_tape(name, argv[2]);
        Rows out;
        Run<Structure, Rows> run(tape, out);
        run.operations(0, tape.operations);
        run.drain();
        FILE *file = std::fopen(argv[3], "wb");
        size_t rows = out.rows.size();
        if (!file || std::fwrite(out.rows.data(), sizeof(Row), rows, file) != rows || std::fclose(file))
            fail(name, argv[3], "cannot be written");
        return 0;
    }
    if (command == "time" && argc >= 3) {
        std::map<std::string, int64_t> given{{"--rounds", ROUNDS}, {"--warm-up", WARM_UP}};
        for (int k = 3; k + 1 < argc; k += 2) given[argv[k]] = std::atoll(argv[k + 1]);
        return time<Structure>(
            read_tape(name, argv[2]), given["--rounds"], given["--warm-up"], given["--histogram"]);
    }
    if (command == "threads" && argc >= 3) {
        std::map<std::string, int64_t> given{{"--rounds", THREADS_ROUNDS}, {"--threads", PRODUCERS}};
        const char *out = nullptr;
        for (int k = 3; k + 1 < argc; k += 2) {
            if (!std::strcmp(argv[k], "--out")) out = argv[k + 1];
            else given[argv[k]] = std::atoll(argv[k + 1]);
        }
        return threads<Structure>(name, read_tape(name, argv[2]), given, out);
    }
    std::fprintf(stderr, "usage: %s %s\n", name, COMMANDS);
    return BAD_INPUT;
}

} // namespace peer
