// An adapter for a timer in C. Put your timer in the place of the list, and call it in these functions.
#include "peer.h"

typedef struct timer {
    peer_timer timer; // deadline and operation
    struct timer *next;
} timer;

typedef struct list {
    timer *first; // by deadline, and then as they were armed
} list;

static void *create(int64_t start) { // empty; the clock is at `start`
    (void)start;
    return calloc(1, sizeof(list));
}

static void add(void *structure, void *added) {
    timer **link = &((list *)structure)->first, *timer_ = added;
    while (*link && (*link)->timer.deadline <= timer_->timer.deadline) link = &(*link)->next;
    timer_->next = *link;
    *link = timer_;
}

static void remove_timer(void *structure, void *removed) { // a timer that is pending
    timer **link = &((list *)structure)->first;
    while (*link != removed) link = &(*link)->next;
    *link = (*link)->next;
}

static void advance(void *structure, int64_t now, peer_run *run) {
    list *list = structure;
    for (timer *fired; (fired = list->first) && fired->timer.deadline <= now;) {
        list->first = fired->next;
        peer_fire(run, fired, fired->timer.deadline); // when it fires, by your timer
    }
}

static int64_t next_wakeup(void *structure) { // something is pending
    return ((list *)structure)->first->timer.deadline;
}

int main(int argc, char **argv) {
    static const peer_structure structure = {
        .name = "my-timer",
        // "order": "unspecified" if equal deadlines may come in any order; other members: docs/peers.md.
        .description = "{\"protocol\": 1, \"name\": \"my-timer\", \"language\": \"C\", \"scheme\": \"sorted list\","
                       " \"rounding\": {\"kind\": \"exact\"}, \"order\": \"fifo\"}",
        .timer_size = sizeof(timer),
        .create = create,
        .destroy = free,
        .add = add,
        .remove = remove_timer,
        .rearm = NULL, // if your timer can re-arm in place
        .advance = advance,
        .next_wakeup = next_wakeup,
    };
    return peer_main(&structure, argc, argv);
}
