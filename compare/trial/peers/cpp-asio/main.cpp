// asio's timers (basic_waitable_timer) on a clock of the peer's own. Each has a wait, whose handler runs
// in io_context::poll. asio does not say when its next timer is due, so it is looked at in each unit.
#include "peer.hpp"
#define ASIO_DISABLE_EPOLL // with it, timers are looked at only when a timerfd has fired, in real time
#include <asio/basic_waitable_timer.hpp>
#include <asio/io_context.hpp>
#include <asio/version.hpp>
#include <functional>

struct Clock { // a unit is a millisecond
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<Clock>;
    static constexpr bool is_steady = true;
    static inline int64_t units = 0;
    static time_point now() { return time_point(duration(units)); }
};

struct Asio {
    static inline asio::io_context *context;

    struct Node : peer::Timer {
        asio::basic_waitable_timer<Clock> timer{*context};
    };

    asio::io_context own{1}; // for one thread
    std::function<void(Node *, int64_t)> fire;
    bool may_be_due = false;

    explicit Asio(int64_t start) {
        context = &own;
        Clock::units = start;
    }

    void add(Node *node) {
        may_be_due |= node->deadline <= Clock::units;
        node->timer.expires_at(Clock::time_point(Clock::duration(node->deadline)));
        node->timer.async_wait([this, node](const asio::error_code &error) {
            if (!error) fire(node, std::max(node->deadline, int64_t(0)));
        });
    }

    void remove(Node *node) { node->timer.cancel(); }

    template <class Fire> void advance(int64_t now, Fire given) {
        Clock::units = now;
        fire = given;
        may_be_due = false;
        own.restart();
        own.poll();
    }

    int64_t next_wakeup() { return Clock::units + !may_be_due; }
};

int main(int argc, char **argv) {
    int version = ASIO_VERSION;
    std::string number = std::to_string(version / 100000) + "." + std::to_string(version / 100 % 1000) +
                         "." + std::to_string(version % 100);
    std::string description = R"json({"protocol": 1, "name": "cpp-asio", "language": "C++",
            "library": "asio", "version": ")json" + number + R"json(",
            "scheme": "binary heap with positions (basic_waitable_timer)", "rearm": "cancel and start",
            "drain": "unit", "limits": {"time": 4398046511104, "step": 200000},
            "notes": {"clock": "a clock type of the peer's own", "expiry": "each advance polls the select reactor"}})json";
    return peer::main<Asio>("cpp-asio", description.c_str(), argc, argv);
}
