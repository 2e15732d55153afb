// colours.js - the colour of each actor in the graph, and the legends that explain the colours.

const TYPES = [[/Convolution/, '--conv'], [/Pooling|SPP/, '--pool'], [/InnerProduct|Embed/, '--inner'], [/Loss|Accuracy/, '--loss'],
  [/Norm|LRN|MVN|Scale|Bias/, '--norm'], [/Data|Input/, '--data'], [/ReLU|ELU|Sigmoid|TanH|AbsVal|BNLL|Power|Exp|Log|Dropout|Threshold|Swish|Clip/, '--act'],
  [/Concat|Eltwise|Split|Slice|Flatten|Reshape|Silence/, '--join']];
const KINDS = { gradient_push: '--push', factor_broadcast: '--factors', lowrank_exchange: '--factors', data_source: '--data', server_shard: '--apply', state_keeper: '--apply', network_link: '--pull', link_acceptor: '--pull', stream: '--forward' };
export const LEGENDS = {
  type: [['convolution', '--conv'], ['pooling', '--pool'], ['inner product', '--inner'], ['norm', '--norm'], ['join', '--join'], ['loss', '--loss'], ['push', '--push'], ['factors', '--factors']],
  route: [['parameter_server', '--push'], ['factor_broadcast', '--factors'], ['lowrank_4', '--factors'], ['lowrank_8', '--factors'], ['lowrank_4_bfloat16', '--factors'], ['lowrank_8_bfloat16', '--factors'], ['learns nothing', '--run']],
  rate: [['quiet', '--run'], ['few', '--data'], ['many', '--push'], ['most', '--stall']],
  queue: [['empty', '--run'], ['1', '--data'], ['some', '--push'], ['8 and more', '--stall']],
};

/** The colour of an actor `n` with the counts `a`: by its type, its route, its messages per second, or its queue. */
export function colourOf(mode, graph, n, a) {
  const grade = (v, limits) => ['--run', '--data', '--push', '--stall'][limits.filter(l => v >= l).length];
  if (mode === 'queue') return grade(a?.queue ?? 0, [1, 2, 8]);
  if (mode === 'rate') return grade(a?.rate ?? 0, [1, 50, 500]);
  if (n.kind !== 'layer') return KINDS[n.kind] ?? '--run';
  if (mode === 'route') {
    const route = graph.routeOf.get(n.card);
    return !route || !n.params ? '--run' : route.route !== 'parameter_server' ? '--factors' : '--push';
  }
  return TYPES.find(([pattern]) => pattern.test(n.type ?? ''))?.[1] ?? '--run';
}
