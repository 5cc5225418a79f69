// An adapter for a timer in C++. Put your timer in the place of the list, and call it in these members.
#include "peer.hpp"
#include <list>

struct Naive {
    struct Node : peer::Timer { // deadline and operation
        std::list<Node *>::iterator place;
    };
    std::list<Node *> timers; // by deadline, and then as they were armed

    explicit Naive(int64_t) {} // empty; the clock is at the argument

    void add(Node *node) {
        auto is_later = [&](Node *other) { return other->deadline > node->deadline; };
        node->place = timers.insert(std::find_if(timers.begin(), timers.end(), is_later), node);
    }

    void remove(Node *node) { timers.erase(node->place); } // a node that is pending

    // void rearm(Node *node), if your timer can re-arm in place

    template <class Fire> void advance(int64_t now, Fire fire) {
        while (!timers.empty() && timers.front()->deadline <= now) {
            Node *node = timers.front();
            timers.pop_front();
            fire(node, node->deadline); // when it fires, by your timer
        }
    }

    int64_t next_wakeup() { return timers.front()->deadline; } // something is pending
};

int main(int argc, char **argv) {
    // "order": "unspecified" if equal deadlines may come in any order; other members: docs/peers.md.
    return peer::main<Naive>(
        "my-timer",
        R"json({"protocol": 1, "name": "my-timer", "language": "C++", "scheme": "sorted list",
            "rounding": {"kind": "exact"}, "order": "fifo"})json",
        argc, argv);
}
