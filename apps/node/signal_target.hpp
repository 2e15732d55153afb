// apps/node/signal_target.hpp - which node of this process hears of a signal.
#pragma once
#include "apps/node/caffe_options.hpp"
#include "messages/node.hpp"

#include <csignal>
#include <functional>
#include <mutex>
#include <utility>

namespace poseidon::app {

/// The run that signals are for: one node's, and another one's where it joins again. The thread that waits for signals shares it.
class signal_target {
 public:
  void take(int signal, signal_effect effect) {
    const std::lock_guard lock(mutex_);
    if (effect == signal_effect::stop) ended_by_ = signal;
    if (effect != signal_effect::none && tell_) tell_(news_of(signal, effect));
  }
  /// Signals go to this node from now on, and so does one that came before there was a node to be told, and asks for the end.
  void hear(std::function<void(interrupted)> tell) {
    const std::lock_guard lock(mutex_);
    tell_ = std::move(tell);
    if (ended_by_ != 0) tell_(news_of(ended_by_, signal_effect::stop));
  }
  /// The signal by which its user wants it to end; 0: none.
  [[nodiscard]] int end_signal() {
    const std::lock_guard lock(mutex_);
    return ended_by_;
  }

 private:
  static interrupted news_of(int signal, signal_effect effect) {
    return {signal, effect == signal_effect::snapshot, signal == SIGTERM};
  }

  std::mutex mutex_;
  std::function<void(interrupted)> tell_;
  int ended_by_ = 0;
};

}  // namespace poseidon::app
