import { ClaimsService } from '../../src/idempotency/claims.service.js';
import { IdempotencyRecords } from '../../src/idempotency/idempotency-records.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { once } from './once.js';

let wire: Wire;
let auth: string;
beforeAll(async () => {
  wire = await Wire.start({}, async (req) => {
    await req.body;
    req.socket.write(answer(wire.provider.requests.length === 1 ? '500 No' : '200 OK', []));
  });
  auth = `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay' })}`;
});
afterAll(() => wire.stop());
beforeEach(() => {
  wire.provider.requests.length = 0;
});

const records = () => wire.gateway.gateway.app.get(IdempotencyRecords);
const keep = () => wire.gateway.gateway.app.get(ClaimsService).keep();

it('a claim whose statement came through although no word of it did binds nobody', async () => {
  const headers = [auth, 'Idempotency-Key: claim'];
  const claim = IdempotencyRecords.prototype.claim.bind(records());
  let late: (() => Promise<unknown>) | undefined;
  jest.spyOn(records(), 'claim').mockImplementationOnce((...args) => {
    late = () => claim(...args);
    return Promise.reject(new Error('Query read timeout'));
  });
  wire.expectRefusal(await once(wire.gateway, headers), 503, 'database_unavailable');
  // Looked for before it is there, too.
  await keep();
  expect(await late!()).toBe(true);
  await keep();
  expect((await once(wire.gateway, headers)).status).toBe(500);
  expect(wire.provider.requests.length).toBe(1);
});

it('a release that did not come through is made up for', async () => {
  const headers = [auth, 'Idempotency-Key: release'];
  jest.spyOn(records(), 'release').mockRejectedValueOnce(new Error('Query read timeout'));
  expect((await once(wire.gateway, headers)).status).toBe(500);
  await keep();
  expect((await once(wire.gateway, headers)).status).toBe(200);
  expect((await once(wire.gateway, headers)).header('idempotent-replayed')).toBe('true');
  expect(wire.provider.requests.length).toBe(2);
});
