// `node bench/routes.mjs`, after `npm run build`: processor time that a route adds to a call whose first target responds. It runs
// what a call runs for its route, and nothing of the call itself: to check, choose and report.
import { makeRoute } from '../dist/src/routes/route.js';
import { RoutedCall } from '../dist/src/proxy/routing/routed-call.js';
import { median } from './statistics.mjs';

const CALLS = 200_000;
const ROUNDS = 9;

const names = ['a', 'b', 'c'];
const providers = new Map(
  names.map((name) => [
    name,
    { name, origin: `https://${name}.example`, basePath: '', endpoints: null, signer: null, tokens: null },
  ]),
);
const directory = { find: (name) => providers.get(name) ?? null };
const record = () => ({
  altered: null,
  requestModel: null,
  attribution: null,
  attempt: null,
  origin: { id: 'x' },
});
const admitted = {
  body: Buffer.from('{"model":"m"}'),
  requestBytes: 13,
  replacement: null,
  isReplacedFor: () => true,
};

const rounds = (strategy) => {
  const route = makeRoute(
    {
      name: 'main',
      targets: names.map((provider) => ({ provider, models: null })),
      ...{ strategy, retry_on: ['connect', 'refused'], max_attempts: 2, dialect: 'any', is_default: false },
    },
    undefined,
  );
  const call = () => {
    const req = {
      method: 'POST',
      rawHeaders: ['Host', 'g', 'Content-Type', 'application/json'],
      target: { endpoint: '/v1/chat/completions', upstreamPath: '/v1/chat/completions', provider: 'main' },
      caller: { grant: { endpoints: 'inference', keyId: '0198a8c4-7f0e-7e3b-9d7a-1b2c3d4e5f60' } },
      call: { admitted, record: record() },
    };
    const routed = new RoutedCall(route, req, directory);
    routed.check();
    routed.begin();
    routed.succeeded();
    return req;
  };
  // What the objects of the call themselves take.
  const without = () => ({
    method: 'POST',
    rawHeaders: ['Host', 'g', 'Content-Type', 'application/json'],
    target: { endpoint: '/v1/chat/completions', upstreamPath: '/v1/chat/completions', provider: 'main' },
    caller: { grant: { endpoints: 'inference', keyId: '0198a8c4-7f0e-7e3b-9d7a-1b2c3d4e5f60' } },
    call: { admitted, record: record() },
  });
  const cost = (work) => {
    const { user, system } = process.cpuUsage();
    for (let i = 0; i < CALLS; i++) sink = work();
    const after = process.cpuUsage();
    return (after.user - user + after.system - system) / CALLS;
  };
  const found = [];
  for (let i = 0; i < ROUNDS; i++) found.push(cost(call) - cost(without));
  return found.slice(2);
};

let sink;
for (const strategy of ['order', 'spread']) {
  const found = rounds(strategy);
  console.log(
    `${strategy}: ${median(found).toFixed(2)} µs a call (${Math.min(...found).toFixed(2)} to ${Math.max(...found).toFixed(2)})`,
  );
}
if (sink === undefined) process.exitCode = 1;
