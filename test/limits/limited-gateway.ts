import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { answer, RawProvider } from '../support/raw-provider.js';

export const JSON_TYPE = ['Content-Type: application/json'];

/** What the provider says that a call used. */
export interface Use {
  input: number;
  output: number;
}

export interface LimitedGateway {
  postern: TestGateway;
  provider: RawProvider;
  use: Use;
  send(key: string, body: object, path?: string, headers?: Record<string, string>): Promise<Reply>;
  /** A new key. @param members also of another team than `default` */
  issue(members: object): Promise<Issued>;
  /** The same, only the key. */
  createKey(members: object): Promise<string>;
  stop(): Promise<void>;
}

export interface Issued {
  id: string;
  key: string;
  team_id: string;
}

export interface Reply {
  status: number;
  code: string | null;
  headers: Headers;
  error: { message: string; type: string; code?: string };
  id: string;
}

export function usageResponse({ input, output }: Use): string {
  return JSON.stringify({
    id: 'x',
    model: 'm',
    usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  });
}

/** A gateway before a provider whose model `m` costs 1 USD for a million input tokens and 10 for a million output tokens. */
export async function startLimited(variables: Record<string, string> = {}): Promise<LimitedGateway> {
  const use: Use = { input: 100, output: 100 };
  const provider = await startUsageProvider(use);
  const postern = await startTestGateway({ PROVIDER_URL: provider.url, ...variables });
  await setPrice(postern);
  let keys = 0;
  const issue = (members: object) =>
    postern.admin<Issued>('POST', '/keys', { team: 'default', name: `limited-${++keys}`, ...members });
  return {
    postern,
    provider,
    issue,
    createKey: async (members) => (await issue(members)).key,
    use,
    send: (key, body, path, headers) => sendTo(postern.url, key, body, path, headers),
    stop: async () => {
      await postern.stop();
      await provider.stop();
    },
  };
}

/** A provider that reports what `use` says when a call ends. */
export function startUsageProvider(use: Use): Promise<RawProvider> {
  return RawProvider.start(async ({ body, socket }) => {
    await body.catch(() => {});
    socket.write(answer('200 OK', JSON_TYPE, usageResponse(use)));
  });
}

/** One such gateway for all tests of a file. Before each test, its provider is as it was at first. */
export function limitedForFile(): LimitedGateway {
  const limited = {} as LimitedGateway;
  let script: LimitedGateway['provider']['script'];
  beforeAll(async () => {
    Object.assign(limited, await startLimited());
    ({ script } = limited.provider);
  });
  beforeEach(() => {
    limited.provider.script = script;
    Object.assign(limited.use, { input: 100, output: 100 });
  });
  afterAll(() => limited.stop());
  return limited;
}

export async function setPrice(postern: Pick<TestGateway, 'admin'>): Promise<void> {
  await postern.admin('POST', '/prices', { catalog: 'default', model: 'm', input: '1', output: '10' });
}

export async function sendTo(
  url: string,
  key: string,
  body: object,
  path = '/v1/chat/completions',
  headers: Record<string, string> = {},
): Promise<Reply> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const parsed = (await response.json().catch(() => ({}))) as Partial<Reply>;
  return {
    status: response.status,
    code: response.headers.get('x-gateway-error'),
    headers: response.headers,
    error: parsed.error ?? { message: '', type: '' },
    id: response.headers.get('x-gateway-request-id')!,
  };
}

interface LimitFigures {
  used: string;
  held: string;
  refused: number;
  resource: string;
  period: string;
}

/** The only limit of a key, or that of its team. */
export async function limitOf(postern: TestGateway, filter: string): Promise<LimitFigures> {
  const { data } = await postern.admin<{ data: LimitFigures[] }>('GET', `/limits?${filter}`);
  return data[0]!;
}

/** Waits until the charges of so many calls are in the log. */
export async function charged(postern: TestGateway, count: number): Promise<void> {
  await eventually(async () => {
    const rows = await postern.database.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM request_log WHERE charge_usd IS NOT NULL',
    );
    return rows[0]!.count >= count;
  });
}
