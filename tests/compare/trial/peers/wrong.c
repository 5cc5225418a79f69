// Timers in C that are right, or wrong in one way: ./wrong FAULT describe | check | time.
#include "peer.h"
#include <stddef.h>

typedef struct timer {
    peer_timer timer;
    int64_t due;
    struct timer *next;
} timer;

typedef struct list {
    int64_t now, count;
    timer *first;
} list;

static const char *fault;

static bool is(const char *name) { return !strcmp(fault, name); }

static void *create(int64_t start) {
    list *created = calloc(1, sizeof *created);
    created->now = start;
    return created;
}

static int64_t due_of(list *list, int64_t deadline) {
    int64_t delay = deadline - list->now;
    if (is("int32")) delay = (int32_t)delay;
    if (is("uint32")) delay = (uint32_t)delay;
    if (is("float")) delay = (int64_t)(float)delay;
    if (is("shift") && delay > 0 && delay >= 1LL << 31) delay = 1LL << ((63 - __builtin_clzll(delay)) & 31);
    if (delay < 0 && is("unsigned")) delay = (uint8_t)delay; // a past deadline wraps
    return delay > 0 ? list->now + delay : list->now;
}

static void insert(list *list, timer *added) {
    timer **link = &list->first;
    bool after_equals = !is("before");
    while (*link && ((*link)->due < added->due || ((*link)->due == added->due && after_equals)))
        link = &(*link)->next;
    added->next = *link;
    *link = added;
}

static void add(void *structure, void *timer_) {
    list *list = structure;
    timer *added = timer_;
    added->due = due_of(list, added->timer.deadline);
    list->count++;
    if (is("overwrites") && list->first && list->first->due == added->due) list->first = list->first->next;
    insert(list, added);
    if (is("forgets") && list->count == 17) list->first = list->first->next; // the array has grown
}

static void remove_timer(void *structure, void *timer_) {
    list *list = structure;
    timer **link = &list->first;
    list->count--;
    if (is("head") && list->first == timer_) return; // only links between timers are changed
    if (is("tail") && !((timer *)timer_)->next) return;
    while (*link && *link != timer_) link = &(*link)->next;
    if (*link) *link = (*link)->next;
}

static void rearm(void *structure, void *timer_) {
    list *list = structure;
    timer *rearmed = timer_;
    if (is("inplace")) { // the deadline is changed, but the timer is not moved
        rearmed->due = due_of(list, rearmed->timer.deadline);
        return;
    }
    remove_timer(list, timer_);
    add(list, timer_);
}

static void advance(void *structure, int64_t now, peer_run *run) {
    list *list = structure;
    list->now = now;
    while (list->first && (is("strict") ? list->first->due < now : list->first->due <= now)) {
        timer *fired = list->first;
        list->first = fired->next;
        list->count--;
        peer_fire(run, fired, fired->due);
        if (is("onlyone")) break;
    }
}

static int64_t next_wakeup(void *structure) {
    list *list = structure;
    if (!list->first) exit(9); // timers are pending, but the list is empty
    return list->first->due + is("strict");
}

int main(int argc, char **argv) {
    fault = argv[1];
    static const peer_structure structure = {
        .name = "wrong",
        .description = "{\"protocol\": 1, \"name\": \"wrong\", \"language\": \"C\", \"scheme\": \"sorted list\","
                       " \"order\": \"fifo\", \"limits\": {\"equal\": 20000}}",
        .timer_size = sizeof(timer),
        .create = create,
        .destroy = free,
        .add = add,
        .remove = remove_timer,
        .rearm = rearm,
        .advance = advance,
        .next_wakeup = next_wakeup,
    };
    return peer_main(&structure, argc - 1, argv + 1);
}
