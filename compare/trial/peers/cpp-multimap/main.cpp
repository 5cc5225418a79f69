// std::multimap from the deadline to the timer: a red-black tree with a node for each timer.
#include "peer.hpp"
#include <map>

struct Multimap {
    struct Node;
    using Tree = std::multimap<int64_t, Node *>;
    struct Node : peer::Timer {
        Tree::iterator place;
    };
    Tree tree;

    explicit Multimap(int64_t) {}

    void add(Node *node) { node->place = tree.emplace(node->deadline, node); }

    void remove(Node *node) { tree.erase(node->place); }

    template <class Fire> void advance(int64_t now, Fire fire) {
        while (!tree.empty() && tree.begin()->first <= now) {
            Node *node = tree.begin()->second;
            tree.erase(tree.begin());
            fire(node, node->deadline);
        }
    }

    int64_t next_wakeup() { return tree.begin()->first; }
};

int main(int argc, char **argv) {
    return peer::main<Multimap>(
        "cpp-multimap",
        R"json({"protocol": 1, "name": "cpp-multimap", "language": "C++", "library": "libstdc++",
            "scheme": "red-black tree (std::multimap)", "order": "fifo",
            "rearm": "cancel and start",
            "notes": {"bytes_per_timer": 32, "tree_node": "48 bytes more, allocated for each timer"}})json",
        argc, argv);
}
