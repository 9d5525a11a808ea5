import { IncomingMessage, ServerResponse } from 'node:http';
import { never } from '../support/never.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const server = () => wire.gateway.gateway.app.getHttpServer();

never('never changes the prototype of a request or a response', async () => {
  const { setPrototypeOf } = Object;
  const changed: unknown[] = [];
  Object.setPrototypeOf = (target: object, prototype: object | null) => {
    const message = target instanceof IncomingMessage || target instanceof ServerResponse;
    if (message && Object.getPrototypeOf(target) !== prototype) changed.push(target);
    return setPrototypeOf(target, prototype) as object;
  };
  try {
    for (const line of [
      'POST /v1/chat/completions',
      'GET /p/default/v1/models',
      'GET /v1/../x',
      'GET /health/live',
    ]) {
      await wire.call(line);
    }
  } finally {
    Object.setPrototypeOf = setPrototypeOf;
  }
  expect(changed).toEqual([]);
  await wire.expectSound(2);
});

it("hands out requests and responses with Express's prototypes before Express sees them", async () => {
  const app = wire.gateway.gateway.app.getHttpAdapter().getInstance();
  const seen: [unknown, unknown][] = [];
  const look = (req: IncomingMessage, res: ServerResponse) =>
    seen.push([Object.getPrototypeOf(req), Object.getPrototypeOf(res)]);
  server().prependListener('request', look);
  await wire.call('POST /v1/chat/completions', [], '{}');
  server().off('request', look);
  expect(seen).toHaveLength(1);
  expect(seen[0]![0]).toBe(app.request);
  expect(seen[0]![1]).toBe(app.response);
  await wire.expectSound(1);
});

it('reads however many headers the size limit lets in', () => {
  expect(server().maxHeadersCount).toBe(0);
});
