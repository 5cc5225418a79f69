// A hashed wheel with rounds (Varghese and Lauck, scheme 6): a list for each of 4 096 slots. Each unit
// looks at every timer of its slot, and takes those whose deadline has come.
#include "peer.h"
#include <stddef.h>

enum { SLOTS = 4096 };

typedef struct timer {
    peer_timer timer;
    struct timer *next, **link; // the pointer that points to this timer
} timer;

typedef struct wheel {
    int64_t now;
    timer *slots[SLOTS], *due, **due_end; // due when they were armed
} wheel;

static void *create(int64_t start) {
    wheel *created = calloc(1, sizeof *created);
    created->now = start;
    created->due_end = &created->due;
    return created;
}

static void insert(timer **link, timer *added) {
    added->next = *link;
    added->link = link;
    if (added->next) added->next->link = &added->next;
    *link = added;
}

static void add(void *structure, void *timer_) {
    wheel *wheel = structure;
    timer *added = timer_;
    if (added->timer.deadline > wheel->now) {
        insert(&wheel->slots[added->timer.deadline % SLOTS], added);
    } else {
        insert(wheel->due_end, added);
        wheel->due_end = &added->next;
    }
}

static void unlink_timer(void *structure, void *timer_) {
    wheel *wheel = structure;
    timer *removed = timer_;
    if (wheel->due_end == &removed->next) wheel->due_end = removed->link;
    *removed->link = removed->next;
    if (removed->next) removed->next->link = removed->link;
}

static void rearm(void *structure, void *timer_) {
    unlink_timer(structure, timer_);
    add(structure, timer_);
}

static void advance(void *structure, int64_t now, peer_run *run) {
    wheel *wheel = structure;
    for (timer *fired; (fired = wheel->due);) {
        unlink_timer(wheel, fired);
        peer_fire(run, fired, wheel->now);
    }
    while (wheel->now < now && run->count) {
        wheel->now++;
        for (timer *next, *each = wheel->slots[wheel->now % SLOTS]; each; each = next) {
            next = each->next;
            if (each->timer.deadline > wheel->now) continue;
            unlink_timer(wheel, each);
            peer_fire(run, each, wheel->now);
        }
    }
    wheel->now = now;
}

static int64_t next_wakeup(void *structure) {
    wheel *wheel = structure;
    return wheel->now + !wheel->due;
}

int main(int argc, char **argv) {
    static const peer_structure structure = {
        .name = "c-hashed-wheel",
        .description = "{\"protocol\": 1, \"name\": \"c-hashed-wheel\", \"language\": \"C\","
                       " \"scheme\": \"hashed wheel with rounds\", \"parameters\": {\"wheel_size\": 4096},"
                       " \"drain\": \"unit\", \"rearm\": \"in place\", \"limits\": {\"step\": 10000000},"
                       " \"notes\": {\"bytes_per_timer\": 40, \"handles\": \"pointers, without generations\"}}",
        .timer_size = sizeof(timer),
        .create = create,
        .destroy = free,
        .add = add,
        .remove = unlink_timer,
        .rearm = rearm,
        .advance = advance,
        .next_wakeup = next_wakeup,
    };
    return peer_main(&structure, argc, argv);
}
