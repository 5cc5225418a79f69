// std::priority_queue. It cannot remove an entry, so an entry of a timer that was cancelled or armed
// again stays, a tombstone, until it comes to the top.
#include "peer.hpp"
#include <queue>

struct PriorityQueue {
    using Node = peer::Timer;
    struct Entry {
        int64_t deadline, operation;
        Node *node;
        bool is_live() const { return node->operation == operation; }
        bool operator<(const Entry &other) const { // the top is the largest
            return deadline != other.deadline ? deadline > other.deadline
                                              : operation > other.operation;
        }
    };
    std::priority_queue<Entry> queue;

    explicit PriorityQueue(int64_t) {}

    void add(Node *node) { queue.push({node->deadline, node->operation, node}); }

    void remove(Node *node) { node->operation = -1; }

    template <class Fire> void advance(int64_t now, Fire fire) {
        while (!queue.empty() && queue.top().deadline <= now) {
            Entry entry = queue.top();
            queue.pop();
            if (!entry.is_live()) continue;
            fire(entry.node, entry.deadline);
            entry.node->operation = -1;
        }
    }

    int64_t next_wakeup() { // something is pending, so a live entry is there
        while (!queue.top().is_live()) queue.pop();
        return queue.top().deadline;
    }
};

int main(int argc, char **argv) {
    return peer::main<PriorityQueue>(
        "cpp-priority-queue",
        R"json({"protocol": 1, "name": "cpp-priority-queue", "language": "C++", "library": "libstdc++",
            "scheme": "binary heap with tombstones (std::priority_queue)", "order": "fifo",
            "rearm": "cancel and start",
            "notes": {"bytes_per_timer": 48, "cancel": "leaves a tombstone until its deadline"}})json",
        argc, argv);
}
