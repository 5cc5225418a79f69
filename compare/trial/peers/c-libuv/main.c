// The timers of libuv's loop, which is stepped by hand: its time is set, and what uv_run calls for
// timers is called. A timer that starts again moves in the heap.
#include "peer.h"
#include <stddef.h>
#include <uv.h>

void uv__run_timers(uv_loop_t *loop); // in the static library; uv_run reads the system's clock first

typedef struct timer {
    peer_timer timer;
    uv_timer_t uv;
} timer;

static uv_loop_t loop;
static peer_run *running;

static void *create(int64_t start) {
    if (!loop.backend_fd && uv_loop_init(&loop)) exit(3);
    // The timers of the round before are no longer there.
    loop.handle_queue[0] = loop.handle_queue[1] = &loop.handle_queue;
    loop.timer_heap.min = NULL;
    loop.timer_heap.nelts = 0;
    loop.time = start;
    return &loop;
}

static void destroy(void *structure) { (void)structure; }

static void fire(uv_timer_t *uv) {
    timer *fired = (timer *)((char *)uv - offsetof(timer, uv));
    peer_fire(running, fired, uv->timeout);
}

static void start(void *structure, void *timer_) { // also of a pending timer
    (void)structure;
    timer *started = timer_;
    if (!started->uv.loop) uv_timer_init(&loop, &started->uv); // its memory was zero
    int64_t delay = started->timer.deadline - (int64_t)loop.time;
    uv_timer_start(&started->uv, fire, delay > 0 ? delay : 0, 0);
}

static void stop(void *structure, void *timer_) {
    (void)structure;
    uv_timer_stop(&((timer *)timer_)->uv);
}

static void advance(void *structure, int64_t now, peer_run *run) {
    (void)structure;
    running = run;
    loop.time = now;
    uv__run_timers(&loop);
}

static int64_t next_wakeup(void *structure) {
    (void)structure;
    return ((uv_timer_t *)((char *)loop.timer_heap.min - offsetof(uv_timer_t, heap_node)))->timeout;
}

int main(int argc, char **argv) {
    static char description[1024];
    snprintf(description, sizeof description,
             "{\"protocol\": 1, \"name\": \"c-libuv\", \"language\": \"C\", \"library\": \"libuv\","
             " \"version\": \"%s\", \"scheme\": \"binary heap of pointers (uv_timer_t)\","
             " \"order\": \"fifo\", \"rearm\": \"in place\","
             " \"notes\": {\"bytes_per_timer\": %zu, \"clock\": \"the loop's time is set by hand\","
             " \"re-arm\": \"uv_timer_start of a timer that is active\"}}",
             uv_version_string(), sizeof(timer));
    peer_structure structure = {
        .name = "c-libuv",
        .description = description,
        .timer_size = sizeof(timer),
        .create = create,
        .destroy = destroy,
        .add = start,
        .remove = stop,
        .rearm = start,
        .advance = advance,
        .next_wakeup = next_wakeup,
    };
    return peer_main(&structure, argc, argv);
}
