#include "actors/run_codec.hpp"

namespace poseidon {

namespace {

template <class Message>
Message parsed(const std::string& bytes, const std::string& what) {
  Message m;
  if (!m.ParseFromString(bytes))
    throw std::invalid_argument("the " + what + " that worker 0 sent (" +
                                std::to_string(bytes.size()) +
                                " bytes) cannot be read. Is its program of another version?");
  return m;
}

net_file net_of(const std::string& bytes, const std::string& what) {
  net_file f;
  f.spec = parsed<::caffe::NetParameter>(bytes, what);
  // The positions stay at home with the files: messages name the layer and say whose file it is.
  f.layer_places.assign(static_cast<std::size_t>(f.spec.layer_size()),
                        spec_position{what + " of worker 0", 0});
  return f;
}

}  // namespace

frames::view view_of(const run_spec& run) {
  frames::view v;
  v.epoch = 1;
  v.solver = run.solver.spec.SerializeAsString();
  v.train_net = run.solver.train_net.spec.SerializeAsString();
  for (const auto& t : run.solver.test_nets) v.test_nets.push_back(t.spec.SerializeAsString());
  v.seed = run.seed;
  v.first_clock = clock_id{run.first_clock};
  return v;
}

run_spec run_of(const frames::view& v) {
  run_spec run;
  run.seed = v.seed;
  run.first_clock = value(v.first_clock);
  run.workers = v.members.size();
  run.solver.spec = parsed<::caffe::SolverParameter>(v.solver, "solver");
  run.solver.train_net = net_of(v.train_net, "train net");
  run.solver.train_state = train_state_of(run.solver.spec);
  for (std::size_t t = 0; t < v.test_nets.size(); ++t) {
    run.solver.test_nets.push_back(net_of(v.test_nets[t], "test net"));
    run.solver.test_states.push_back(test_state_of(run.solver.spec, t));
  }
  return run;
}

}  // namespace poseidon
