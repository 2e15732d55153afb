#include "apps/web/attached_site.hpp"

#include "apps/web/live_site.hpp"
#include "models/json.hpp"

#include <atomic>
#include <list>
#include <mutex>

namespace poseidon::web {

namespace {

using namespace std::chrono_literals;

constexpr auto ask_again = 1000ms;
/// Bytes that a browser has not read yet. With more, nothing is read from the node, which skips this slow reader.
constexpr std::size_t most_untaken = 4u << 20;

/// Reads the node's events for one browser in a thread of its own: the server's thread must not wait.
class attached_feed : public feed {
 public:
  attached_feed(page_address node, std::string target)
      : node_(std::move(node)), target_(std::move(target)), reader_([this] { read(); }) {}
  ~attached_feed() override {
    stop_.set();
    reader_.join();
  }

  std::string next() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(come_, {});
  }

 private:
  void read() {
    while (!stop_.wait(0ms)) {
      try {
        event_stream events(node_, target_, &stop_);
        say("");
        while (!stop_.wait(0ms)) take(events.next());
      } catch (const std::runtime_error& e) {
        say(e.what());
      }
      (void)stop_.wait(ask_again);
    }
  }

  void take(const std::string& text) {
    std::unique_lock lock(mutex_);
    come_ += text;
    while (come_.size() > most_untaken) {
      lock.unlock();
      if (stop_.wait(50ms)) return;
      lock.lock();
    }
  }

  void say(const std::string& away) {
    json_object source;
    source.put("node", to_string(node_.at));
    if (!away.empty()) source.put("away", away);
    const std::lock_guard lock(mutex_);
    come_ += "event: source\ndata: " + source.text() + "\n\n";
  }

  page_address node_;
  std::string target_;
  wake_up stop_;
  std::mutex mutex_;
  std::string come_;
  std::thread reader_;
};

class attached_site : public site {
 public:
  explicit attached_site(page_address node) : node_(std::move(node)), gate_(node_.token) {}
  ~attached_site() override {
    stop_.set();
    for (auto& e : errands_) e.runs.join();
  }

  answer get(const request& r) override {
    if (auto refused = gate_.refusal(r)) return {*std::move(refused), {}};
    const auto target = r.query.empty() ? r.path : r.path + "?" + r.query;
    if (r.path == "/events")
      return {{200, "text/event-stream", "", ""}, std::make_unique<attached_feed>(node_, target)};
    if (r.path == "/api/recording") return {{200, "application/json", "null", ""}, {}};
    // A decoded path may have a line end in it, which would end a line of the forwarded request; these paths have none.
    if (!is_asked_of_the_node(r.path)) return {page_file(r.path), {}};
    answer a;
    std::promise<response> promise;
    a.later = promise.get_future();
    run(target, std::move(promise));
    return a;
  }

 private:
  struct errand {
    std::shared_ptr<std::atomic<bool>> done = std::make_shared<std::atomic<bool>>(false);
    std::thread runs;
  };

  /// A thread for each request: there are no more of them than connections of browsers, and the node answers quickly.
  void run(const std::string& target, std::promise<response> promise) {
    errands_.remove_if([](errand& e) {
      if (!*e.done) return false;
      e.runs.join();
      return true;
    });
    auto& e = errands_.emplace_back();
    e.runs = std::thread([this, target, done = e.done, promise = std::move(promise)]() mutable {
      try {
        promise.set_value(web::get(node_, target, &stop_));
      } catch (const std::runtime_error& error) {
        promise.set_value({502, "text/plain; charset=utf-8", std::string(error.what()) + "\n", ""});
      }
      *done = true;
    });
  }

  page_address node_;
  token_gate gate_;
  wake_up stop_;
  std::list<errand> errands_;
};

}  // namespace

std::unique_ptr<server> serve_attached(const host_port& at, page_address node) {
  server_options o;
  o.at = at;
  o.hosts = hosts_of(at);
  return std::make_unique<server>(std::move(o), std::make_shared<attached_site>(std::move(node)));
}

}  // namespace poseidon::web
