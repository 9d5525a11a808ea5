import { answer, type Script } from '../support/raw-provider.js';
import { Journal } from '../../src/request-log/journal/journal.js';
import { UpstreamPool } from '../../src/proxy/upstream/upstream-pool.js';
import { Routed } from './routed.js';

let routed: Routed;
beforeAll(async () => {
  routed = await Routed.start();
});
afterAll(() => routed.gateway.stop());
afterEach(() => jest.restoreAllMocks());

/** Refuses the call after `first`. */
const refusesAfter =
  (first: () => void): Script =>
  async (req) => {
    await req.body;
    first();
    req.socket.write(answer('429 Too Many Requests', [], 'of a'));
  };

it.each([
  [
    'the journal takes no calls',
    'journal_unavailable',
    () => {
      const journal = routed.gateway.gateway.app.get(Journal);
      jest.spyOn(journal, 'accepting', 'get').mockReturnValue(false);
    },
  ],
  [
    'there are too many calls',
    'overloaded',
    () => void jest.spyOn(UpstreamPool.prototype, 'reserve').mockReturnValue(false),
  ],
])('says what the client got if the next attempt cannot begin because %s', async (_, code, first) => {
  routed.script({ a: refusesAfter(first) });
  const reply = await routed.call(await routed.route());
  jest.restoreAllMocks();
  expect([reply.status, reply.header('x-gateway-error'), routed.counts]).toEqual([503, code, [1, 0, 0]]);
  expect(await routed.rows(reply)).toMatchObject([
    { attempt: 1, provider: 'a', status: 503, outcome: 'upstream_error', error_code: code },
  ]);
});
