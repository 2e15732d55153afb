# messages/wire/wire.capnp - what leaves a process. Long because the whole wire is described in one place.
@0xd1c3a5f0b2e49687;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("poseidon::wire");

# What leaves a process: the header of every frame between two nodes. frames.hpp has the same as plain
# structs, frame_fields.hpp is the only code that knows both.
#
# Stream    After the handshake (messages/wire/handshake.hpp) each direction is a row of pieces. A piece is
#             preamble   8 bytes: 0xB5, then header words (24 bits), then a CRC-32C, little-endian
#             header     that many 8-byte words: a Frame in Cap'n Proto's stream format, unpacked
#             payload    raw bytes, never part of the Cap'n Proto message: min(262144, what is left)
#           A piece with header words starts a frame. One with none continues the frame that was started
#           last and is not complete, so that an urgent frame can go between two pieces of a big one; at
#           most 8 frames are open at a time, and beside them one that its first piece completes.
# Checksums The preamble's is over the header, so that nothing is read to a place that a damaged header names; the header
#           holds that of the payload in its own piece. In a piece without a header the preamble's is over the payload.
# Order     Frames of one kind between two nodes arrive in the order sent; between kinds priority decides.
# Numbers   float32 and every integer are little-endian. Worker, chunk, clock, version: see ids.hpp.
# Evolution The handshake refuses a peer of another protocol version (codec.hpp, wire_version), because
#           nodes that differ in the meaning of a field would train a wrong model without a word. Raise it
#           whenever an old reader would misread a new writer. From the first release on, fields and union members are only
#           added, and a retired one is renamed obsoleteX. A reader that meets an unknown member ends the link and says so.

struct Frame {
  from @0 :UInt32;          # the writer's seat; 4294967295 until it knows (a joiner before its view)
  payloadBytes @1 :UInt32;  # of the whole frame, all pieces; 0 unless the member below has a payload

  payloadChecksum @2 :UInt32;  # CRC-32C of the payload in this piece, the frame's first

  union {
    heartbeat @3 :Void;               # any node to any, whenever it has been quiet for a while
    view @4 :View;
    memberReady @5 :MemberReady;
    startTraining @6 :Void;           # the first node to all: every member is ready
    pushGradient @7 :PushGradient;
    freshParameters @8 :FreshParameters;
    installHistory @9 :InstallHistory;
    gatherHistory @10 :GatherHistory;
    history @11 :History;
    workerReport @12 :WorkerReport;
    stopRequested @13 :StopRequested;
    stopAfter @14 :StopAfter;
    goodbye @15 :Goodbye;
    workerDone @16 :WorkerDone;
    gradientSquares @17 :GradientSquares;
    factors @18 :Factors;
    probe @19 :Probe;
    probeHeard @20 :ProbeHeard;
    watch @21 :Watch;
    report @22 :Void;                 # any node to the first, while it watches. Payload: a Report, packed
    holdTraining @23 :Void;           # the first node to all: begin no clock that has not begun
    workerPaused @24 :WorkerPaused;
    sendRate @25 :SendRate;
    timeNet @26 :TimeNet;
    netTimed @27 :NetTimed;
    snapshotRequested @28 :Void;      # any node to the first: write a snapshot, and go on
    workerLeft @29 :WorkerLeft;       # the first node to each other one
    factorOffer @30 :FactorOffer;
    drain @31 :Drain;
    nextView @32 :NextView;
    joinReady @33 :JoinReady;
    leaveWanted @34 :LeaveWanted;
    suspect @36 :Suspect;
    viewPrepare @37 :ViewBallot;
    viewPromise @38 :ViewPromise;
    viewAccept @39 :ViewBallot;
    viewAccepted @40 :ViewBallot;
    summedGradient @41 :SummedGradient;
    sharedState @42 :SharedState;
    gathering @43 :Gathering;
    lowrankFactor @44 :LowrankFactor;
  }
  epoch @35 :UInt64;        # of the view that the writer's link is bound to; 0 before its first. A frame with values of
                            # another epoch than the reader's is not believed
}

# A member of a view. Its seat is given by the leader when it lets a node in: the first has 0, each further one the next number,
# and none is given twice in a run. The place among the members of a view is the node's worker id in that view.
struct Member {
  seat @0 :UInt32;
  address @1 :Text;           # "host:port" where that node accepts links
  fingerprint @2 :Text;       # models/fingerprint.hpp; a witness, which computes nothing, has none
}

# Who kept the solver state until a view began.
struct FormerView {
  seats @0 :List(UInt32);     # by worker of that view; empty: there was none, and the leader gives all first values
  routes @1 :List(UInt8);     # as in View
}

# The leader to each node that joins. A joiner needs no files but its data.
struct View {
  epoch @0 :UInt64;
  you @1 :UInt32;             # the receiver's own seat; one of the members' or the witnesses', unless `prospect`
  solver @2 :Data;            # caffe.SolverParameter, protobuf binary, its nets inside
  seed @3 :UInt64;
  firstClock @4 :UInt64;
  firstSample @5 :UInt64;     # global index of the first clock's first sample
  testPhases @6 :UInt64;      # that a run before this one has done
  routes @7 :List(UInt8);     # by parameter of the train net: 0 server_shards, 1 factor_broadcast, 2 lowrank_4, 3 lowrank_8, 4 and 5 the same in bfloat16; empty: all 0
  wire @8 :List(UInt8);       # by parameter of the train net: 0 float32, 1 float16, 2 bfloat16, 3 int8, 4 int4; empty: all 0
  watched @9 :Bool;           # the first node shows the run: record spans, answer watch frames
  reasons @10 :List(Text);    # by layer of the train net: why it has its route, for people; "" or not there: nothing to say
  routesFollowLinks @11 :Bool; # routes change when links do: nodes that broadcast factors measure whether a link has become faster
  shares @12 :List(Share);    # by worker; empty: the net's batch for each
  parameters @14 :List(Parameter); # not empty: programs compute the gradients of these, and there is no solver
  shared @24 :List(SharedEntry); # what these programs have beside them, and what is to be worker 0's on all before the first clock
  optimizer @15 :UInt8;       # where parameters is not empty: 0 the programs make the updates; 1 SGD, 2 Adam, 3 AdamW: the shards, as PyTorch does
  nodes @16 :List(Member);    # by worker
  before @17 :FormerView;
  prospect @18 :Bool;         # the receiver joins a run that trains: it gets ready, says joinReady, and hears the view itself later
  run @20 :UInt64;            # which run this is, a number that its first leader has drawn: an address may belong to another one now
  survive @19 :UInt32;        # how many nodes may be lost at the same time without loss of solver state: the number of keepers of each chunk
  zeroesLostState @21 :Bool;  # solver state that no member has any more begins with zeros; else the run ends
  stateZeroedAt @22 :UInt64;  # the last iteration at which that happened; 0: it has not
  witnesses @23 :List(Member); # rising seats, none of them a member's: they vote on the next view, and train nothing. A witness that
                              # joins hears the view as a prospect, without solver, and later ones as NextView
  kinds @25 :List(Member);    # members of this run's views so far, rising seats, one of each fingerprint
  dataSets @26 :List(DataSet); # that the first node reads, by net and data layer; empty: not known. A node compares its own before it gets ready
  takesNewcomers @27 :Bool;   # where parameters is not empty: programs may join later
  given @28 :GivenState;      # as in NextView
  replicas @13 :UInt32;       # of the first node, where shares are empty: a node without an option of its own takes the same number; 0: not known
}

# What the programs of a view give to those that come with the next one, as SharedState whose index is that after the last entry of View.shared.
struct GivenState {
  bytes @0 :UInt64;
  own @1 :UInt64;             # so many at the beginning are the oldest member's; of the others each member has the same
  digest @2 :Digest;          # of these others
}

# What a data layer reads.
struct DataSet {
  net @0 :UInt32;             # 0: the train net; t + 1: test net t
  layer @1 :Text;
  sample @2 :Text;            # the tops' shapes without the batch axis, as people read them: "1x28x28 and one value"
  records @3 :UInt64;         # in an epoch
}

# What a program declares that computes gradients itself.
struct Parameter {
  name @0 :Text;
  dims @1 :List(UInt32);      # empty: one value
  given @2 :Bool;             # a version is what worker 0 has pushed, as it is; only worker 0 pushes values
  first @3 :Digest;           # of worker 0's first values, as float32
  bundle @4 :Bool;            # its values have nothing in common: float32 where others travel in the formats 3 and 4
}
struct SharedEntry {
  name @0 :Text;
  kind @1 :Text;              # in the programs' words
  size @2 :UInt64;            # bytes
  digest @3 :Digest;          # of worker 0's
}
# messages/wire/digest.hpp
struct Digest {
  high @0 :UInt64;
  low @1 :UInt64;
}

# One worker's part of a micro-batch of all workers together, which is their number times the net's batch. Workers take
# their samples in the order of their ids, each worker those of all its micro-batches, one after the other.
struct Share {
  samples @0 :UInt64;         # at least one for each replica
  replicas @1 :UInt32;        # the first ones take a sample more where the share does not divide
}

# The first node to each other one before the view, where shares of the batch are not to be equal, and to a newcomer before the run.
struct TimeNet {
  solver @0 :Data;            # as in View
  seed @1 :UInt64;
  measure @2 :Bool;           # train a few iterations and tell how fast; else only tell the replicas
}

# The first node to each other one before the view, where programs wait: what their users read. As often as another one comes, in runs of
# 64 programs at most; in larger ones each hears it when it comes itself.
struct Gathering {
  there @0 :UInt32;           # workers that have joined, the first one included
  wanted @1 :UInt32;          # workers without which the run does not begin
}

# The answer to TimeNet.
struct NetTimed {
  replicas @0 :UInt32;        # that the writer will have
  samplesPerSecond @1 :Float64;  # of the net's batch, all replicas together; 0 if it was not to be measured
}

# Each member to the leader: links to all members are up and the actors wait.
struct MemberReady {
  replicas @0 :UInt32;        # of the writer: where shares are equal, all nodes need the same number
  epoch @1 :UInt64;           # of the view that it is ready for
  hasParameters @2 :Data;     # in the first view where View.parameters is not empty: bit i % 8 of byte i / 8 is set where the writer has worker 0's
  hasShared @3 :Data;         # first values of parameter i already, or its bytes of shared entry i; they do not travel to it
}

# Each node to the first: its last clock is trained; it keeps serving the others until a goodbye comes.
struct WorkerDone {
  version @0 :UInt64;         # of its parameters
  othersGoOn @1 :Bool;        # where programs compute: it leaves, and whoever trains a further clock does so without it
}

# The first node to each other one where View.parameters is not empty, itself included: that worker trains no further clock. One
# that does would wait for it for ever, or, with othersGoOn, goes on without it.
struct WorkerLeft {
  left @0 :UInt32;            # its seat
  version @1 :UInt64;         # of its parameters
  othersGoOn @2 :Bool;
}

# Bytes that mean nothing, to time links with. The first node to each other one, before the view; while training, where
# routes follow the links, from each to each as part of no round.
struct Probe {
  round @0 :UInt32;
  last @1 :Bool;              # of this round to this node; it answers that one
}
struct ProbeHeard {
  round @0 :UInt32;
}

# Each node to the leader, twice in a change of the view: when it holds (it will not begin `clock` before it hears
# Drain), and when it has drained (its parameters are at that version).
struct WorkerPaused {
  clock @0 :UInt64;
  drained @1 :Bool;
}

# The leader to all: from `clock` on another view holds, which NextView tells when all have drained. Not before every member of
# it has rebuilt and said memberReady does startTraining let that clock begin.
struct Drain {
  clock @0 :UInt64;
  forNewcomers @1 :Bool;      # programs give what these need
}
# Where a newcomer dies before all are ready, another one follows, of the same clock and without it.
struct NextView {
  epoch @0 :UInt64;           # more than that of the view before
  nodes @1 :List(Member);     # by worker. Who is not among them gives its solver state away and leaves
  routes @2 :List(UInt8);     # as in View; empty: all on the server
  factorRows @3 :List(UInt32); # where View.parameters is not empty: by parameter, most rows of its factors on one worker in a
                              # clock; empty: all 0
  shares @4 :List(Share);     # as in View
  why @5 :Text;               # for people; may be empty
  firstClock @6 :UInt64;      # the view holds from this clock on
  lost @7 :List(UInt32);      # seats, rising: members of views before that are gone without having left
  allHaveValues @8 :Bool;     # it begins with iteration 0 like the view before it, and all members have got all values already
  witnesses @9 :List(Member); # as in View
  lacking @10 :List(UInt32);  # seats, rising: members that have not the version of firstClock whole, and are given it
  given @11 :GivenState;      # to programs that come with it; no bytes: none come
}

# The members of the view of `epoch` decide by ballots which view is next (actors/membership/ballot_box.hpp).
struct Ballot {
  round @0 :UInt32;           # 0: none
  seat @1 :UInt32;            # of the proposer
}
struct ViewBallot {           # a proposal, and the vote for it
  epoch @0 :UInt64;
  number @1 :Ballot;
  promised @2 :Ballot;        # by who votes; above number: refused
  value @3 :NextView;         # in viewAccept
}
struct ViewPromise {
  ballot @0 :ViewBallot;      # promised above number: refused, and nothing follows
  accepted @1 :ViewBallot;    # the highest that the writer has accepted; not there: none
  whole @2 :Bool;             # the writer has all parameters of `version`; a witness has none
  version @3 :UInt64;
  drained @4 :Bool;
  hears @5 :List(UInt32);     # seats, rising
  dead @6 :List(UInt32);      # seats, rising: their processes are proved to have ended
}

# A node that joins a run that trains, to the leader: its nets and data are there, and links to all members. A witness: the links.
struct JoinReady {
  replicas @0 :UInt32;        # as in MemberReady
}

# A member to the leader: the others are to go on without it.
struct LeaveWanted {
  reason @0 :Text;            # for people; may be empty
}

# A member of a view that has not begun, to the leader: the writer has no link to this newcomer any more.
struct Suspect {
  seat @0 :UInt32;
  reason @1 :Text;            # for people; may be empty
}

# Each worker to the first, once, where View.parameters is not empty: which gradients its program can give as factors.
struct FactorOffer {
  rows @0 :List(UInt32);      # by parameter: rows of its factors in a clock; 0: it gives the gradient as a whole
}

# Each node to the first: the rate at which all its links together take what it sends.
struct SendRate {
  mbitS @0 :Float64;          # positive
  probed @1 :Bool;            # timed with probes; false: taken from what training sent
}

# gradient_push to the server_shard that owns the chunk. Payload: all values of the chunk, in the format that step names or, if that is
# 0, in its parameter's format (View.wire), summed over the writer's replicas and micro-batches, not averaged. Once per
# (worker, chunk, clock). In a reduced format they are rounded to the nearest; in one of View.wire after what rounding took from the
# clock before has been added: the sums over all clocks stay those of the unrounded gradients. In int8 and int4 the values are of blocks
# of 256, the last one shorter: of each block a bfloat16, its step, and the integers by which the step is multiplied, of 8 bits, or of 4, two in
# a byte, the first one in its lower half; where their number is odd the upper half of the last byte is not read.
struct PushGradient {
  chunk @0 :UInt32;
  clock @1 :UInt64;
  nothing @2 :Bool;           # the writer has no gradient of it in this clock: no payload. Only where View.parameters is not empty
  step @3 :StepMark;          # where View.parameters is not empty: how the writer's program steps with it
}

# What two workers' steps of one parameter and clock have to have in common.
struct StepMark {
  rate @0 :Float64;           # the learning rate
  digest @1 :UInt32;          # of all hyperparameters and the number of the step; 0: it does not say
  wire @2 :UInt8;             # the format of the writer's gradients in this clock, numbered as in View.wire; only where View.optimizer is 0
}

# The first node to each other one before the first clock, where View.shared is not empty. Payload: bytes `first` and following of this
# entry, 2097152 of them, fewer at its end. In rising order of index, then first: what memberReady says that the reader has is left out.
struct SharedState {
  index @0 :UInt32;
  first @1 :UInt64;
}

# factor_broadcast to that of every other node, for a layer whose parameters have route 1. The writer's factors
# of a clock are u [rows, outputs], then v [rows, inputs], row-major float32; rows are those of its
# micro-batches, each with its replicas' one after the other. Payload: values `first` and following of these,
# 524288 of them, fewer at the end of u and of v. In rising order of `first`, none twice.
struct Factors {
  layer @0 :UInt32;           # place in the train net, automatic Split layers counted
  clock @1 :UInt64;
  rows @2 :UInt32;            # the same in all frames of a layer and clock
  first @3 :UInt64;
  step @4 :StepMark;          # as PushGradient's
}

# lowrank_exchange to that of the layer's owner, for a layer whose parameters have a route from 2 to 5: the writer's part. From the owner to
# all others: what it has made of all parts. The matrix has rows (the weights' first axis) and columns (their other axes); r is 4 or 8.
# Payload, row-major, float32 or with routes 4 and 5 bfloat16: P [rows, r], then, as float32, the gradients of the layer's other learned parameters, summed over the writer's replicas and
# micro-batches, in the parameters' order; or Q [columns, r]. For each clock first P, then Q.
struct LowrankFactor {
  layer @0 :UInt32;           # place in the train net, automatic Split layers counted
  clock @1 :UInt64;
  second @2 :Bool;            # Q
}

# A server_shard to every worker. Before the first clock of a run: the leader to all; before that of a view: a member of the view
# before to each node that has joined, each member the chunks whose number modulo theirs is its worker id there. Payload: the chunk's float32 values. Where its
# parameter has a reduced format and this is not the first version: the difference of the shard's own values and
# those that every node had, in that format; each adds it, in float32, to the version before.
struct FreshParameters {
  chunk @0 :UInt32;
  version @1 :UInt64;         # updates applied; version c is what clock c computes with at staleness 0
  nothing @2 :Bool;           # no worker had a gradient of it: no payload. Only where View.parameters is not empty
  format @3 :UInt8;           # numbered as in View.wire: the values themselves, in this format; only where View.optimizer is 0
}

# A server_shard to each keeper of the chunk, workers owner + 1 to owner + View.survive modulo their number, in place of
# FreshParameters: once per clock. Payload: the sum of all workers' gradients, float32, added in worker order. The keeper applies the
# solver's rule to it as the shard does. Not for running statistics, whose values go to all.
struct SummedGradient {
  chunk @0 :UInt32;
  checksum @1 :UInt32;        # value_checksum of the shard's values of the version that this makes, clock + 1
  clock @2 :UInt64;
  rate @3 :Float32;           # of this step: the learning rate times the parameter's lr_mult
  decay @4 :Float32;          # weight decay times its decay_mult
  scale @5 :Float32;          # factor of the sum; clip_gradients is in it
}

# A server_shard to every other one when it has the gradients of all workers for all of its chunks; only
# where the solver has clip_gradients. Payload: 256 unsigned 128-bit integers, the sums of the squares of
# the summed gradients' values by float exponent (models/device/square_sum.hpp). Once per clock.
struct GradientSquares {
  clock @0 :UInt64;
}

# To the owning shard and to the chunk's keepers (or to every factor_broadcast of the layer): the leader before the first clock of a resumed run;
# the node that kept the state until then, before the first clock of the next view. Payload: float32 values `first` and
# following of one array of the chunk's solver state.
struct InstallHistory {
  chunk @0 :UInt32;
  slot @1 :UInt32;            # which of the solver rule's arrays; SGD's momentum is 0
  first @2 :UInt64;
}

# Node 0 to every shard; answered by one History frame per chunk and slot.
struct GatherHistory {
  version @0 :UInt64;
}
struct History {
  chunk @0 :UInt32;
  slot @1 :UInt32;
  version @2 :UInt64;
}

# Each worker's solver to node 0's, for display and test phases.
struct WorkerReport {
  clock @0 :UInt64;
  testNet @1 :Int32 = -1;     # -1: outputs of the training net
  passes @2 :UInt32;          # that the sums are over
  sums @3 :List(Float64);     # by output value, in net order
  images @4 :UInt64;          # trained by this worker since the view began
  communicationNs @5 :UInt64; # how long some layer's update was under way since then
  exposedNs @6 :UInt64;       # how much of that time the writer's streams were idle
}

# Any node to node 0: please end.
struct StopRequested {
  reason @0 :Text;
}

# The leader to all: training ends at this version; finish the clocks below it, start none above.
struct StopAfter {
  version @0 :UInt64;
  reason @1 :Text;
}

# To each peer, before closing on purpose, so that the end of the connection is no failure.
struct Goodbye {
  reason @0 :Text;            # empty: done as planned
  cause @1 :UInt8;            # 0 the run cannot go on, 1 the others go on without the reader, 2 without the writer,
                              # 3 the reader is refused, 4 the reader is done, and the others train on without it
}

# The first node to each other one, every second while it shows the run (--web): send a report each interval. A node
# that gets none for five seconds stops reporting.
struct Watch {
  sentNs @0 :Int64;           # the writer's monotonic clock; comes back in reports, and so the clocks are compared
  intervalMs @1 :UInt32;      # between two reports, 50 to 10000
}

# What a node has done since its last report. Everything that has a name is sent once; from then on its place in the
# order of sending stands for it: the first name of the first report is 0, and so on over all reports of a writer.
# At most 4 MiB packed. None is sent while the one before still waits in its link.
struct Report {
  sentNs @0 :Int64;           # the writer's monotonic clock, like all times here
  askedNs @1 :Int64;          # Watch.sentNs of the newest watch frame, in the other's clock; 0: none yet
  heardNs @2 :Int64;          # when that frame came
  replicas @3 :UInt32;
  firstName @4 :UInt32;       # how many names, actors, edges and lanes earlier reports have sent
  firstActor @5 :UInt32;
  firstEdge @6 :UInt32;
  firstLane @7 :UInt32;
  names @8 :List(Text);       # of actors, actor types, messages, layers, phases and lanes
  actors @9 :List(Actor);
  edges @10 :List(Edge);
  lanes @11 :List(UInt32);    # their names
  handled @12 :List(Handled); # of actors that have handled a message since the last report. One that stands here and not
                              # in `ended` lives: where it had ended, another one of its name has taken its place
  counts @13 :List(Count);    # of edges along which something was sent since then
  spans @14 :List(Span);      # at most 4096, the newest
  spansLeftOut @15 :UInt64;   # since the last report
  links @16 :List(Link);      # all of them
  ended @17 :List(UInt32);    # actors that have terminated since then; their edges' counts stand
  renamed @18 :List(Renamed); # places that links with other names have taken; what was sent to these is counted anew

  struct Actor {
    name @0 :UInt32;          # place among the names
    type @1 :UInt32;
  }
  struct Edge {
    from @0 :UInt32;          # place among the actors
    to @1 :UInt32;
    message @2 :UInt32;
  }
  struct Renamed {
    actor @0 :UInt32;         # place among the actors
    name @1 :UInt32;
  }
  struct Handled {
    actor @0 :UInt32;
    messages @1 :UInt64;      # of other actors, by all that have borne its name
  }
  struct Count {
    edge @0 :UInt32;
    messages @1 :UInt64;      # since the run began
    bytes @2 :UInt64;         # of payload
  }
  struct Span {
    lane @0 :UInt32;
    name @1 :UInt32;          # a layer's
    phase @2 :UInt32;
    chunk @3 :Int32;          # -1: not about one
    beginNs @4 :Int64;
    endNs @5 :Int64;
    clock @6 :UInt64;
    bytes @7 :UInt64;
  }
  struct Link {
    peer @0 :UInt32;
    bytesOut @1 :UInt64;      # on the socket, since the link was opened
    bytesIn @2 :UInt64;
    framesOut @3 :UInt64;
    framesIn @4 :UInt64;
  }
}
