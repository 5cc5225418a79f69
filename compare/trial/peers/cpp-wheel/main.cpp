// The yardstick: the simplest fast wheel that C++ allows. Eight levels of 256 slots reach every
// deadline. A timer waits on the level of the highest byte in which its deadline differs from the
// clock, in the slot of that byte; so the earliest timer is on the lowest level that has any.
#include "peer.hpp"
#include <bit>

struct Link {
    Link *next, *previous;
};

struct Wheel {
    struct Node : Link, peer::Timer {};
    static_assert(sizeof(Node) == 40);
    static constexpr int LEVELS = 8, SLOTS = 256, WORDS = SLOTS / 64;

    int64_t now;
    uint64_t occupied[LEVELS][WORDS] = {}; // a bit for each slot
    Link slots[LEVELS][SLOTS], due;        // `due` was due when it was armed

    explicit Wheel(int64_t start) : now(start) {
        for (auto &level : slots)
            for (auto &slot : level) slot = {&slot, &slot};
        due = {&due, &due};
    }

    static int level_of(uint64_t differing) { return (63 - std::countl_zero(differing)) / 8; }
    static int slot_of(int64_t time, int level) { return time >> 8 * level & 255; }

    void add(Node *node) {
        Link *list = &due;
        if (node->deadline > now) {
            int level = level_of(node->deadline ^ now), slot = slot_of(node->deadline, level);
            list = &slots[level][slot];
            occupied[level][slot / 64] |= 1ULL << slot % 64;
        }
        node->next = list;
        node->previous = list->previous;
        list->previous = list->previous->next = node;
    }

    void remove(Node *node) { // the bit of a slot that is now empty is cleared when it is reached
        node->next->previous = node->previous;
        node->previous->next = node->next;
    }

    void rearm(Node *node) {
        remove(node);
        add(node);
    }

    // The first slot with a bit on the lowest level that has any: its level, number and time.
    bool first(int &level, int &slot, int64_t &time) {
        for (level = 0; level < LEVELS; level++)
            for (int word = 0; word < WORDS; word++)
                if (uint64_t bits = occupied[level][word]) {
                    slot = word * 64 + std::countr_zero(bits);
                    int64_t above = level == 7 ? 0 : now >> 8 * (level + 1) << 8 * (level + 1);
                    time = above | int64_t(slot) << 8 * level;
                    return true;
                }
        return false;
    }

    template <class Fire> void expire(Link &list, Fire fire) {
        for (Link *link = list.next; link != &list;) {
            auto node = static_cast<Node *>(link);
            link = link->next;
            fire(node, now);
        }
        list = {&list, &list};
    }

    template <class Fire> void advance(int64_t target, Fire fire) {
        if (due.next != &due) expire(due, fire);
        int level, slot;
        int64_t time;
        while (first(level, slot, time) && time <= target) {
            now = time;
            occupied[level][slot / 64] &= ~(1ULL << slot % 64);
            Link &list = slots[level][slot];
            if (level) { // cascade: every timer goes to a lower level, or is due now
                Link *link = list.next;
                list = {&list, &list};
                for (Link *end = &list; link != end;) {
                    auto node = static_cast<Node *>(link);
                    link = link->next;
                    add(node);
                }
                if (due.next != &due) expire(due, fire);
            } else {
                expire(list, fire);
            }
        }
        now = target;
    }

    int64_t next_wakeup() {
        int level, slot;
        int64_t time;
        return due.next != &due || !first(level, slot, time) ? now : time;
    }
};

int main(int argc, char **argv) {
    return peer::main<Wheel>(
        "cpp-wheel",
        R"json({"protocol": 1, "name": "cpp-wheel", "language": "C++",
            "scheme": "hierarchical wheel that cascades",
            "rearm": "in place", "threads": "once", "parameters": {"levels": 8, "wheel_size": 256},
            "notes": {"bytes_per_timer": 40, "handles": "pointers, without generations"}})json",
        argc, argv);
}
