// A binary heap whose timers know their positions, so that any of them can be removed.
#include "peer.hpp"

struct Heap {
    struct Node : peer::Timer {
        size_t position;
    };
    struct Entry {
        int64_t deadline, operation;
        Node *node;
        bool operator<(const Entry &other) const {
            return deadline != other.deadline ? deadline < other.deadline
                                              : operation < other.operation;
        }
    };
    std::vector<Entry> heap;

    explicit Heap(int64_t) {}

    void put(size_t position, const Entry &entry) {
        heap[position] = entry;
        entry.node->position = position;
    }

    void up(size_t position, Entry entry) {
        for (; position; position = (position - 1) / 2) {
            Entry &parent = heap[(position - 1) / 2];
            if (!(entry < parent)) break;
            put(position, parent);
        }
        put(position, entry);
    }

    void down(size_t position, Entry entry) {
        for (size_t child; (child = 2 * position + 1) < heap.size(); position = child) {
            if (child + 1 < heap.size() && heap[child + 1] < heap[child]) child++;
            if (!(heap[child] < entry)) break;
            put(position, heap[child]);
        }
        put(position, entry);
    }

    void add(Node *node) {
        heap.emplace_back();
        up(heap.size() - 1, {node->deadline, node->operation, node});
    }

    void remove(Node *node) {
        Entry last = heap.back();
        heap.pop_back();
        size_t position = node->position;
        if (position == heap.size()) return;
        if (position && last < heap[(position - 1) / 2]) up(position, last);
        else down(position, last);
    }

    void rearm(Node *node) {
        Entry entry{node->deadline, node->operation, node};
        size_t position = node->position;
        if (position && entry < heap[(position - 1) / 2]) up(position, entry);
        else down(position, entry);
    }

    template <class Fire> void advance(int64_t now, Fire fire) {
        while (!heap.empty() && heap[0].deadline <= now) {
            Node *node = heap[0].node;
            remove(node);
            fire(node, node->deadline);
        }
    }

    int64_t next_wakeup() { return heap[0].deadline; }
};

int main(int argc, char **argv) {
    return peer::main<Heap>(
        "cpp-heap",
        R"json({"protocol": 1, "name": "cpp-heap", "language": "C++",
            "scheme": "binary heap with positions", "order": "fifo", "rearm": "in place",
            "notes": {"bytes_per_timer": 56}})json",
        argc, argv);
}
