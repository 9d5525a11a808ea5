import { createHash, randomUUID } from 'node:crypto';
import { RawClient, request } from '../support/raw-client.js';
import { answer, type Script } from '../support/raw-provider.js';
import { FULL } from '../support/scale.js';
import { requestsMarked } from './corpus.js';
import { mutate } from './mutate.js';
import { Random } from './random.js';
import { readStrictly } from './strict-requests.js';
import { finalAnswer, type FuzzTarget, startFuzzTarget, within } from './target.js';

const CASES = FULL ? 20_000 : 1_500;
/** Connections under fire at the same time, so that answers have someone else's to be mixed up with. */
const AT_ONCE = 20;
const random = new Random();

jest.setTimeout(300_000);

let target: FuzzTarget;
let begun = 0;
let completed = 0;

const digest = (body: Buffer) => createHash('sha256').update(body).digest('hex');

/** Tells each request what it was: its target and a digest of its body. */
const mirror: Script = async (req) => {
  begun++;
  const received = await req.body.catch(() => null);
  if (received === null) return;
  completed++;
  const reply = answer('200 OK', [`X-Target: ${req.head.split(' ', 2)[1]}`], digest(received.bytes));
  const headEnd = reply.indexOf('\r\n\r\n') + 4;
  req.socket.write(req.head.startsWith('HEAD ') ? reply.subarray(0, headEnd) : reply);
};

beforeAll(async () => {
  target = await startFuzzTarget(mirror);
});
afterAll(() => target.stop());

interface Case {
  bytes: Buffer;
  client: RawClient;
}

async function open(n: number): Promise<Case> {
  const corpus = requestsMarked(`m${n}-${random.seed}`, target.auth);
  const bytes = mutate(random.pick(corpus), random.pick(corpus), random);
  const client = await RawClient.connect(target.port);
  // In one piece or in two: a parser's state must survive a packet's end anywhere.
  const cut = random.below(2) === 0 ? 0 : random.below(bytes.length + 1);
  if (cut > 0) client.send(bytes.subarray(0, cut));
  setImmediate(() => client.send(bytes.subarray(cut)));
  return { bytes, client };
}

interface Verdict {
  /** Requests whose answer by the provider came back. */
  answered: number;
  /** Requests that the provider may have seen the beginning of. */
  begun: number;
  /** For people: what was sent and what came of it. */
  story: string;
}

/** Checks what one connection got back. */
async function judge({ bytes, client }: Case): Promise<Verdict> {
  const legal = readStrictly(bytes);
  const sent = JSON.stringify(bytes.toString('latin1')).replace(/x{100,}/g, 'xxx…xxx');
  const describe = () => `seed ${random.seed}: ${sent}`;
  let answered = 0;
  const statuses: (number | string)[] = [];
  for (const { method, target: path, body } of legal.requests) {
    const reply = await within(finalAnswer(client, method), describe);
    statuses.push(reply?.status ?? 'the end');
    if (reply === null) break;
    if (reply.header('x-gateway-error') !== undefined) {
      if (reply.status < 400) throw new Error(`a rejection of ${reply.status}; ${describe()}`);
      continue;
    }
    answered++;
    const mine = [200, path.replace(/^\/p\/default(?=\/)/, ''), method === 'HEAD' ? '' : digest(body)];
    const got = [reply.status, reply.header('x-target'), reply.body.toString()];
    if (JSON.stringify(got) !== JSON.stringify(mine)) {
      throw new Error(`got ${JSON.stringify(got)}, not ${JSON.stringify(mine)}; ${describe()}`);
    }
  }
  return { answered, begun: legal.begun ? 1 : 0, story: `${statuses.join(', ')} after ${sent}` };
}

/** A valid call on a fresh connection gets its own answer. */
async function probe(): Promise<void> {
  const body = randomUUID();
  const client = await RawClient.connect(target.port);
  client.send(request(`POST /v1/chat/completions?probe=${body}`, [target.auth], body));
  const reply = await within(finalAnswer(client, 'POST'), () => `the probe, seed ${random.seed}`);
  client.destroy();
  expect([reply?.status, reply?.header('x-target'), reply?.body.toString()]).toEqual([
    200,
    `/v1/chat/completions?probe=${body}`,
    digest(Buffer.from(body)),
  ]);
}

it(`${CASES} mutated requests: the process lives, no response goes astray, no request is seen that was not sent`, async () => {
  let answered = 0;
  let mayHaveBegun = 0;
  for (let n = 0; n < CASES; n += AT_ONCE) {
    const cases = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => open(n + i)));
    await probe();
    const verdicts = await Promise.all(cases.map(judge));
    for (const { client } of cases) client.destroy();
    answered += 1 + verdicts.reduce((sum, verdict) => sum + verdict.answered, 0);
    mayHaveBegun += verdicts.reduce((sum, verdict) => sum + verdict.begun, 0);
    if (completed !== answered || begun > answered + mayHaveBegun) {
      throw new Error(
        `seed ${random.seed}, case ${n}: the provider saw ${completed} whole requests of ${begun}, ` +
          `clients got ${answered} answers of its and may have begun ${mayHaveBegun} more\n` +
          verdicts.map(({ story }) => story).join('\n'),
      );
    }
  }
  await probe();
  expect(target.process.stderr).toBe('');
});
