#include "actors/training/layer_work.hpp"

#include "actors/core/trace.hpp"

#include <utility>

namespace poseidon {

namespace {

class synchronous_work final : public layer_work {
 public:
  explicit synchronous_work(layer_work_setup setup) : layer_work(std::move(setup)) {}

  issue_work forward(const pass_id& p, std::shared_ptr<const batch> input) override {
    auto work = labelled(p, false);
    work.run = forward_kernel(p, std::move(input));
    work.results.read_outputs = setup_.outputs.read;
    inspect(work);
    return work;
  }

 private:
  issue_work training_backward(const pass_id& p, bool contributes) override {
    auto work = labelled(p, true);
    work.run = [k = setup_.runs_backward ? setup_.compute : nullptr, now = issued_now(p), p,
                contribute = contributes ? setup_.contribute : nullptr] {
      if (k != nullptr) k->backward(now);
      if (contribute) contribute(p);
    };
    inspect(work);
    return work;
  }
};

class asynchronous_work final : public layer_work {
 public:
  explicit asynchronous_work(layer_work_setup setup) : layer_work(std::move(setup)) {}

  issue_work forward(const pass_id& p, std::shared_ptr<const batch> input) override {
    auto work = labelled(p, false);
    work.run = forward_kernel(p, std::move(input));
    if (setup_.fed != nullptr)
      work.run = [run = std::move(work.run), copy = setup_.compiled, fed = setup_.fed] {
        run();
        copy->keep(*fed);
      };
    if (setup_.outputs.read) fetch_outputs(work);
    inspect(work);
    return work;
  }

 private:
  /// The copy is behind the kernel in the device's queue before the next pass can overwrite what it reads.
  void fetch_outputs(issue_work& work) const {
    const auto fetched = std::make_shared<std::shared_ptr<fetched_values>>();
    work.run = [run = std::move(work.run), copy = setup_.compiled, blobs = setup_.outputs.blobs,
                fetched] {
      run();
      *fetched = copy->fetch(blobs);
    };
    work.to_host.begin = [fetched](completion done) { (*fetched)->when_here(std::move(done)); };
    work.results.read_outputs = [fetched, compute = setup_.outputs.compute] {
      return compute((*fetched)->values());
    };
  }

  issue_work training_backward(const pass_id& p, bool contributes) override {
    auto work = labelled(p, true);
    work.run = [k = setup_.runs_backward ? setup_.compute : nullptr, now = issued_now(p)] {
      if (k != nullptr) k->backward(now);
    };
    if (contributes)
      copy_gradient(work);
    else
      inspect(work);
    return work;
  }

  void copy_gradient(issue_work& work) const {
    work.to_host.begin = [copy = setup_.compiled, l = setup_.place.index](completion done) {
      copy->bring_gradients(l, std::move(done));
    };
    work.to_host.phase = setup_.copy_phase;
    work.to_host.settle = [contribute = setup_.contribute, look = setup_.inspect,
                           p = work.label.pass] {
      if (look) look(p, true);
      contribute(p);
    };
  }
};

}  // namespace

layer_work::layer_work(layer_work_setup setup) : setup_(std::move(setup)) {}

std::optional<issue_work> layer_work::backward(const pass_id& p, bool contributes) {
  if (!setup_.place.training() || (!setup_.runs_backward && !contributes)) return std::nullopt;
  return training_backward(p, contributes);
}

issue_work layer_work::copy_parameters() const {
  issue_work work;
  work.label.layer = setup_.place.name;
  work.label.phase = span_phase::copy_to_device;
  work.run = [copy = setup_.compiled, l = setup_.place.index] { copy->bring_parameters(l); };
  return work;
}

issue_work layer_work::labelled(const pass_id& p, bool backward) const {
  issue_work work;
  work.label = {p, backward, setup_.place.name,
                backward                  ? span_phase::backward
                : setup_.place.training() ? span_phase::forward
                                          : span_phase::test};
  return work;
}

pass layer_work::issued_now(const pass_id& p) const {
  const auto after = setup_.passes_after ? setup_.passes_after(p.index) : 0;
  const auto of = setup_.passes_per_iteration;
  if (of == 0) return {value(p.clock), p.first_sample, setup_.seed, after, now_ns(), p.index};
  const auto iteration = value(p.clock) * setup_.iterations + p.index / of;
  return {iteration, p.first_sample, setup_.seed, after, now_ns(), p.index % of};
}

std::function<void()> layer_work::forward_kernel(const pass_id& p,
                                                 std::shared_ptr<const batch> input) const {
  // The stream releases the batch before this one: the last kernel that reads it may still be in the queue.
  if (setup_.fed != nullptr)
    return [k = setup_.compute, now = issued_now(p), next = std::move(input),
            fed = setup_.fed]() mutable {
      k->feed(*next);
      *fed = std::move(next);
      k->forward(now);
    };
  return [k = setup_.compute, now = issued_now(p), p, pin = setup_.pin] {
    if (pin) pin(p);
    k->forward(now);
  };
}

void layer_work::inspect(issue_work& work) const {
  if (!setup_.inspect) return;
  work.run = [run = std::move(work.run), look = setup_.inspect, p = work.label.pass,
              backward = work.label.backward] {
    run();
    look(p, backward);
  };
}

std::unique_ptr<layer_work> make_layer_work(layer_work_setup setup, bool is_asynchronous) {
  if (is_asynchronous) return std::make_unique<asynchronous_work>(std::move(setup));
  return std::make_unique<synchronous_work>(std::move(setup));
}

}  // namespace poseidon
