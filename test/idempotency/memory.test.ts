import { ClaimsService } from '../../src/idempotency/claims.service.js';
import { eventually } from '../support/eventually.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { once, open } from './once.js';

const MIB = 1024 * 1024;
const ALL = 256 * MIB;
const large = Buffer.alloc(6 * MIB, 'l');

let wire: Wire;
let auth: string;
let claims: ClaimsService;
beforeAll(async () => {
  wire = await Wire.start({}, async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], large));
  });
  auth = `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay' })}`;
  claims = wire.gateway.gateway.app.get(ClaimsService);
});
afterAll(() => wire.stop());

const KEY = (name: string) => [auth, `Idempotency-Key: ${name}`];

/** All that is taken has been given back. */
const allFree = () =>
  eventually(() => {
    if (!claims.reserve(ALL)) return false;
    claims.giveBack(ALL);
    return true;
  });

it('answers that slow clients have yet to take are counted, first ones and repeated ones, until they have', async () => {
  expect((await once(wire.gateway, KEY('stored'))).body.equals(large)).toBe(true);
  await allFree();
  expect(claims.reserve(ALL - 10 * MIB)).toBe(true);

  for (const name of ['first', 'stored']) {
    const slow = await open(wire.gateway, KEY(name));
    await slow.head();
    slow.socket.pause();
    const repeat = await eventually(async () => {
      const reply = await once(wire.gateway, KEY('stored'));
      return reply.status === 503 && reply;
    });
    wire.expectRefusal(repeat, 503, 'overloaded');
    // A first call runs all the same, and is not kept.
    const before = wire.provider.requests.length;
    for (let i = 0; i < 2; i++) expect((await once(wire.gateway, KEY(`beyond-${name}`))).status).toBe(200);
    expect(wire.provider.requests.length).toBe(before + 2);
    slow.destroy();
    await eventually(async () => (await once(wire.gateway, KEY('stored'))).status === 200);
  }
  claims.giveBack(ALL - 10 * MIB);
  await allFree();
});
