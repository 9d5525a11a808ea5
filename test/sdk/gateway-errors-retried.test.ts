import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';
import { unusedPort } from '../support/unused-port.js';
import { reject, type Sdk, SDKS } from './rejections.js';

const BOTH: Sdk[] = ['openai', 'anthropic'];
const ANSWERS = {
  openai: { id: 'chatcmpl-1', object: 'chat.completion', choices: [] },
  anthropic: { id: 'msg_1', type: 'message', role: 'assistant', content: [] },
};

let provider: RawProvider;
let gateway: TestGateway;

beforeAll(async () => {
  provider = await RawProvider.start(() => {});
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});
afterEach(() => jest.restoreAllMocks());

/** Notes for how long the SDKs mean to sleep; of these milliseconds they sleep none. */
function sleepsExcept(skipped: number): number[] {
  const sleeps: number[] = [];
  const real = setTimeout;
  jest.spyOn(globalThis, 'setTimeout').mockImplementation(((act: () => void, ms: number, ...more: []) => {
    sleeps.push(ms);
    return real(act, ms === skipped ? 0 : ms, ...more);
  }) as typeof setTimeout);
  return sleeps;
}

/** The retry counts that reached the log, of calls that failed in this way. */
async function loggedRetries(from: TestGateway, code: string, rows: number): Promise<number[]> {
  const logged = await eventually(async () => {
    const found = await from.database.query<{ sdk_retry_count: number }>(
      'SELECT sdk_retry_count FROM request_log WHERE error_code = $1 ORDER BY 1',
      [code],
    );
    return found.length === rows && found;
  });
  return logged.map((row) => row.sdk_retry_count);
}

/** Both SDKs ask three times, by their own policy, and raise their class for the status. */
async function expectThreeAttempts(from: TestGateway, status: number, code: string, type: string) {
  const [openai, anthropic] = await Promise.all(
    BOTH.map((sdk) => reject(sdk, { url: from.url, key: from.key })),
  );
  expect([openai!.attempts, anthropic!.attempts]).toEqual([3, 3]);
  expect(openai!.error).toBeInstanceOf(OpenAI.InternalServerError);
  expect(openai!.error).toMatchObject({ status, code, type: 'api_error', param: null });
  expect(anthropic!.error).toBeInstanceOf(Anthropic.APIError);
  expect(anthropic!.error).toMatchObject({ status, type });
  for (const { error } of [openai!, anthropic!]) {
    expect(error.headers.get('x-gateway-error')).toBe(code);
    expect(error.headers.get('x-should-retry')).toBeNull();
    expect(error.headers.get('retry-after')).toBeNull();
    expect(error.message).not.toMatch(/127\.0\.0\.1|ECONN|UND_ERR/);
  }
  expect(await loggedRetries(from, code, 6)).toEqual([0, 0, 1, 1, 2, 2]);
}

it('502 upstream_unreachable', async () => {
  const lonely = await startTestGateway({ PROVIDER_URL: `http://127.0.0.1:${await unusedPort()}` });
  await expectThreeAttempts(lonely, 502, 'upstream_unreachable', 'api_error');
  await lonely.stop();
});

it('502 upstream_invalid_response: each attempt is one request upstream', async () => {
  const before = provider.requests.length;
  provider.script = async (req) => {
    await req.body;
    req.socket.end('SSH-2.0-OpenSSH_9.2\r\n');
  };
  await expectThreeAttempts(gateway, 502, 'upstream_invalid_response', 'api_error');
  expect(provider.requests.length - before).toBe(6);
});

it('504 upstream_timeout: each attempt is one request upstream, and none is left open', async () => {
  const before = provider.requests.length;
  provider.script = (req) => req.closed;
  const hasty = await startTestGateway({ PROVIDER_URL: provider.url, UPSTREAM_HEADERS_TIMEOUT_MS: '50' });
  await expectThreeAttempts(hasty, 504, 'upstream_timeout', 'timeout_error');
  expect(provider.requests.length - before).toBe(6);
  await Promise.all(provider.requests.slice(before).map(({ closed }) => closed));
  await hasty.stop();
});

it.each(BOTH)('a temporary error costs the application nothing (%s)', async (sdk) => {
  const before = provider.requests.length;
  provider.script = async (req) => {
    await req.body;
    const first = provider.requests.length === before + 1;
    if (first) req.socket.destroy();
    else req.socket.write(answer('200 OK', ['Content-Type: application/json'], JSON.stringify(ANSWERS[sdk])));
  };
  const result = await SDKS[sdk].send({ url: gateway.url, key: gateway.key }, fetch);
  expect(result).toMatchObject(ANSWERS[sdk]);
  expect(provider.requests.length - before).toBe(2);
});

it.each(BOTH)(
  '503 no_provider_configured is not sent again: only an operator can change it (%s)',
  async (sdk) => {
    const empty = await startTestGateway();
    const { error, attempts } = await reject(sdk, { url: empty.url, key: empty.key });
    expect(error).toMatchObject({ status: 503 });
    expect(error.headers.get('retry-after')).toBe('1');
    expect(error.headers.get('x-gateway-error')).toBe('no_provider_configured');
    expect(error.headers.get('x-should-retry')).toBe('false');
    expect(attempts).toBe(1);
    await empty.stop();
  },
);

describe('503 database_unavailable', () => {
  let database: TestDatabase;
  let forwarder: TcpForwarder;
  let cutOff: TestGateway;

  beforeAll(async () => {
    database = await createDatabase();
    forwarder = await TcpForwarder.to(database.url);
    await forwarder.open();
    cutOff = await startTestGateway({ PROVIDER_URL: provider.url, DATABASE_URL: forwarder.url });
  });
  afterAll(async () => {
    await cutOff.stop();
    await forwarder.close();
    await database.drop();
  });

  it.each(BOTH)(
    'is asked again after its retry-after, and the call succeeds once Postgres is back (%s)',
    async (sdk) => {
      // A key the gateway has not seen yet, so that it must ask.
      const key = await cutOff.createKey();
      provider.script = async (req) => {
        await req.body;
        req.socket.write(answer('200 OK', ['Content-Type: application/json'], JSON.stringify(ANSWERS[sdk])));
      };
      const before = provider.requests.length;
      const codes: (string | null)[] = [];
      const sleeps = sleepsExcept(NaN);
      await forwarder.close();
      const result = await SDKS[sdk].send({ url: cutOff.url, key, maxRetries: 5 }, async (...args) => {
        const response = await fetch(...args);
        codes.push(response.headers.get('x-gateway-error'));
        if (codes.length === 1) {
          expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
          await forwarder.open();
        }
        return response;
      });
      expect(result).toMatchObject(ANSWERS[sdk]);
      expect(codes.slice(0, -1).every((code) => code === 'database_unavailable')).toBe(true);
      expect(codes.at(-1)).toBeNull();
      expect(sleeps).toContain(1_000);
      expect(provider.requests.length - before).toBe(1);
    },
  );
});
