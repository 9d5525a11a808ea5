import { KeyLookupService } from '../../src/auth/key-lookup.service.js';
import { RequestLogService } from '../../src/request-log/request-log.service.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

/*
 * A revoked key is of no use for requests that were begun before: their bodies may be awaited for as long as their clients
 * like.
 */

let wire: Wire;
let keys = 0;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());
const app = () => wire.gateway.gateway.app;

interface Issued {
  id: string;
  key: string;
}

function issue(members: object = {}): Promise<Issued> {
  const name = `awaited-${++keys}`;
  return wire.gateway.admin<Issued>('POST', '/keys', { team: 'default', name, ...members });
}

const BODY = '{"model":"m"}';
const LENGTH = [`Content-Length: ${BODY.length}`];
const BUDGET = { budgets: [{ tokens: 1_000_000, period: 'day' }] };

/** Sends a head and a part of the body, has something happen once the key was accepted, and sends the rest. */
async function statusAfter(
  { key }: Issued,
  headers: string[],
  [begun, rest]: [string, string],
  happen: () => Promise<unknown>,
): Promise<unknown[]> {
  const client = await wire.connect();
  const head = request('POST /v1/chat/completions', [`Authorization: Bearer ${key}`, ...headers]);
  client.send(Buffer.concat([head, Buffer.from(begun)]));
  const answer = client.answer();
  // On a slow machine, the key may have expired before the head was read.
  let isAnswered = false;
  void answer.then(() => (isAnswered = true));
  await eventually(() => isAnswered || app().get(RequestLogService).openCount === 1);
  await happen();
  client.send(rest);
  const reply = await answer;
  client.destroy();
  return [reply.status, reply.header('x-gateway-error')];
}

async function revoke({ id, key }: Issued): Promise<void> {
  await wire.gateway.admin('POST', `/keys/${id}/revoke`);
  await eventually(() => app().get(KeyLookupService).findCached(key) === null);
}

never.each<[string, string[], [string, string], object]>([
  ['of known length', LENGTH, ['{', BODY.slice(1)], {}],
  ['in chunks', ['Transfer-Encoding: chunked'], ['', `d\r\n${BODY}\r\n0\r\n\r\n`], {}],
  ['that a budget needs', LENGTH, ['{', BODY.slice(1)], BUDGET],
  [
    'of a call that is to run once',
    [...LENGTH, 'Idempotency-Key: a'],
    ['{', BODY.slice(1)],
    { idempotency: 'replay' },
  ],
])(
  'does not forward a call whose key was revoked while a body was awaited %s',
  async (_, headers, body, members) => {
    const issued = await issue(members);
    expect(await statusAfter(issued, headers, body, () => revoke(issued))).toEqual([401, 'invalid_api_key']);
    await wire.expectSound(0);
  },
);

it('forwards a call if another key was revoked meanwhile', async () => {
  const other = await issue();
  const happen = async () => {
    const { version } = app().get(KeyLookupService);
    await revoke(other);
    await eventually(() => app().get(KeyLookupService).version > version);
  };
  expect(await statusAfter(await issue(), LENGTH, ['{', BODY.slice(1)], happen)).toEqual([200, undefined]);
  await wire.expectSound(1);
});

never('does not forward a call whose key has expired while its body was awaited', async () => {
  let expiry = 0;
  // A busy machine may take longer than 3 s; then the key is rejected.
  const issued = await eventually(() => {
    expiry = Date.now() + 3_000;
    return issue({ expires_at: new Date(expiry).toISOString() }).catch(() => null);
  });
  const result = await statusAfter(issued, LENGTH, ['{', BODY.slice(1)], () =>
    eventually(() => Date.now() > expiry),
  );
  expect(result).toEqual([401, 'invalid_api_key']);
  await wire.expectSound(0);
});
