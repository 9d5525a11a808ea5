import { startTestGateway, type TestGateway } from '../support/gateway.js';

// passport is one object per process: a strategy found there by name belongs to whoever registered it last.
let gateways: TestGateway[];

beforeAll(async () => {
  gateways = [await startTestGateway(), await startTestGateway()];
});
afterAll(() => Promise.all(gateways.map((gateway) => gateway.stop())));

async function statusOf({ url }: TestGateway, key: string): Promise<number> {
  const answer = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await answer.arrayBuffer();
  return answer.status;
}

it('each gateway of a process knows the keys of its own database, and no others', async () => {
  const statuses = gateways.flatMap((gateway) => gateways.map(({ key }) => statusOf(gateway, key)));
  // A known key gets as far as the missing provider.
  expect(await Promise.all(statuses)).toEqual([503, 401, 401, 503]);
});

it('calls that overlap each get their own verdict', async () => {
  const [one, other] = gateways as [TestGateway, TestGateway];
  const keys = Array.from({ length: 60 }, (_, i) => (i % 3 === 0 ? one.key : i % 3 === 1 ? other.key : 'x'));
  const statuses = await Promise.all(keys.map((key) => statusOf(one, key)));
  expect(statuses).toEqual(keys.map((key) => (key === one.key ? 503 : 401)));
});
