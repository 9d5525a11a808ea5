import { randomBytes, randomUUID } from 'node:crypto';
import { RawClient, type ReceivedResponse, request } from '../support/raw-client.js';
import { answer, type Script } from '../support/raw-provider.js';
import { FULL } from '../support/scale.js';
import { answersMarked } from './corpus.js';
import { mutate } from './mutate.js';
import { Random } from './random.js';
import { finalAnswer, type FuzzTarget, startFuzzTarget, within } from './target.js';

const CASES = FULL ? 5_000 : 500;
const AT_ONCE = 100;
const random = new Random();

jest.setTimeout(300_000);

let target: FuzzTarget;
/** What the provider answers to the call of this mark. */
const scripted = new Map<string, { bytes: Buffer; cut: number; ends: boolean }>();

const misbehave: Script = async (req) => {
  await req.body;
  const mark = /[?&]m=([0-9a-f]+)/.exec(req.head)?.[1];
  const script = mark === undefined ? undefined : scripted.get(mark);
  if (script === undefined) {
    req.socket.write(answer('200 OK', [], req.head.split(' ', 2)[1]));
    return;
  }
  const { bytes, cut, ends } = script;
  if (cut > 0) req.socket.write(bytes.subarray(0, cut));
  setImmediate(() => {
    if (cut < bytes.length) req.socket.write(bytes.subarray(cut));
    if (ends) req.socket.end();
  });
};

beforeAll(async () => {
  target = await startFuzzTarget(misbehave, {
    // Responses that hang wait for them; the probes beside them must not.
    UPSTREAM_HEADERS_TIMEOUT_MS: '3000',
    UPSTREAM_IDLE_TIMEOUT_MS: '3000',
  });
});
afterAll(() => target.stop());

/** Headers of the gateway's own, and of this hop's framing. */
const OWN = ['x-gateway-request-id', 'connection', 'keep-alive', 'transfer-encoding'];

async function callOnce(marks: Set<string>): Promise<void> {
  const mark = randomBytes(8).toString('hex');
  marks.add(mark);
  const corpus = answersMarked(mark);
  const bytes = mutate(random.pick(corpus), random.pick(corpus), random);
  scripted.set(mark, { bytes, cut: random.below(bytes.length + 1), ends: random.below(2) === 0 });
  const describe = () => `seed ${random.seed}: ${JSON.stringify(bytes.toString('latin1'))}`;
  const method = random.below(10) === 0 ? 'HEAD' : 'POST';
  const client = await RawClient.connect(target.port);
  client.send(
    request(`${method} /v1/chat/completions?m=${mark}`, [target.auth], method === 'HEAD' ? '' : '{}'),
  );
  const reply = await within(finalAnswer(client, method), describe);
  client.destroy();
  scripted.delete(mark);
  if (reply !== null) judge(reply, bytes, mark, marks, describe);
}

/** A whole answer is either a rejection of the gateway's, or made of what the provider sent for this very call. */
function judge(
  reply: ReceivedResponse,
  bytes: Buffer,
  mark: string,
  marks: Set<string>,
  describe: () => string,
): void {
  const text = bytes.toString('latin1');
  if (reply.header('x-gateway-error') !== undefined) {
    if (![502, 504].includes(reply.status)) throw new Error(`a rejection of ${reply.status}; ${describe()}`);
    return;
  }
  for (const [name, value] of reply.headers) {
    if (!OWN.includes(name.toLowerCase()) && !(text.includes(name) && text.includes(value))) {
      throw new Error(`made up ${name}: ${value}; ${describe()}`);
    }
  }
  const body = reply.body.toString('latin1');
  if (reply.header('content-length') !== undefined && !text.includes(body)) {
    throw new Error(`made up a body of ${JSON.stringify(body)}; ${describe()}`);
  }
  for (const other of `${reply.head}${body}`.match(/[0-9a-f]{16}/g) ?? []) {
    if (other !== mark && marks.has(other)) throw new Error(`got the answer to ${other}; ${describe()}`);
  }
}

async function probe(): Promise<void> {
  const path = `/v1/chat/completions?probe=${randomUUID()}`;
  const client = await RawClient.connect(target.port);
  client.send(request(`POST ${path}`, [target.auth], '{}'));
  const reply = await within(finalAnswer(client, 'POST'), () => `the probe, seed ${random.seed}`);
  client.destroy();
  expect([reply?.status, reply?.body.toString()]).toEqual([200, path]);
}

it(`${CASES} mutated responses: the process survives, each client gets its own or a clean error, each call is one`, async () => {
  let calls = 0;
  const marks = new Set<string>();
  for (let n = 0; n < CASES; n += AT_ONCE) {
    const probes = Array.from({ length: 5 }, probe);
    await Promise.all([...probes, ...Array.from({ length: AT_ONCE }, () => callOnce(marks))]);
    calls += AT_ONCE + probes.length;
    if (target.provider.requests.length !== calls) {
      throw new Error(
        `seed ${random.seed}, case ${n}: ${target.provider.requests.length} requests for ${calls} calls`,
      );
    }
  }
  await probe();
  expect(target.process.stderr).toBe('');
});
