// std::multimap without an adapter: with N timers pending, cancel one and start another; a step of the
// clock for every 100 pairs. Prints the CPU time of a pair in ns.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <random>
#include <vector>

struct Timer {
    int64_t deadline;
    int32_t id;
    std::multimap<int64_t, Timer *>::iterator place;
};

static int64_t cpu() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

static double round_of(int n, int pairs) {
    std::mt19937_64 random(n);
    std::multimap<int64_t, Timer *> tree;
    std::vector<Timer> timers(n);
    std::vector<bool> pending(n);
    std::vector<int32_t> victims(pairs);
    std::vector<int64_t> delays(pairs);
    for (auto &victim : victims) victim = random() % n;
    for (auto &delay : delays) delay = 1 + random() % 60'000;
    int64_t now = 0, fired = 0;
    auto start = [&](int id, int64_t deadline) {
        timers[id].deadline = deadline, timers[id].id = id, pending[id] = true;
        timers[id].place = tree.emplace(deadline, &timers[id]);
    };
    auto advance = [&](int64_t moment) {
        now = moment;
        while (!tree.empty() && tree.begin()->first <= now) {
            pending[tree.begin()->second->id] = false;
            tree.erase(tree.begin());
            fired++;
        }
    };
    for (int id = 0; id < n; id++) start(id, 1 + random() % 60'000);
    advance(200);
    int64_t began = cpu();
    for (int pair = 0; pair < pairs; pair++) {
        if (pair % 100 == 0) advance(200 + pair / 100);
        int id = victims[pair];
        if (pending[id]) tree.erase(timers[id].place);
        start(id, now + delays[pair]);
    }
    double ns = double(cpu() - began) / pairs;
    return fired < 0 ? 0 : ns;
}

int main(int argc, char **argv) {
    int n = std::atoi(argv[1]), pairs = std::atoi(argv[2]), warm_up = std::atoi(argv[3]);
    double ns = 0;
    for (int round = 0; round <= warm_up; round++) ns = round_of(n, pairs);
    std::printf("%f\n", ns);
}
