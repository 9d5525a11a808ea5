import { answer, RawProvider } from '../support/raw-provider.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let provider: RawProvider;
let replicas: TestGateway[];

beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
  const first = await startTestGateway({ PROVIDER_URL: provider.url });
  replicas = [first, await startTestGateway({ PROVIDER_URL: provider.url }, first.database)];
});
afterAll(async () => {
  for (const replica of [...replicas].reverse()) await replica.stop();
  await provider.stop();
});

interface Issued {
  id: string;
  key: string;
  prefix: string;
  ended_secrets?: string[];
}

const admin = <T = Issued>(method: string, path: string, body?: object) =>
  replicas[0]!.admin<T>(method, path, body);

let names = 0;
const issue = () => admin('POST', '/keys', { team: 'default', name: `rotated-${++names}` });
const rotate = ({ id }: Issued, body?: object) => admin('POST', `/keys/${id}/rotate`, body);

/** What each replica answers to each secret. */
async function statuses(...secrets: string[]): Promise<number[]> {
  const asked = secrets.flatMap((secret) => replicas.map(({ url }) => [url, secret] as const));
  return Promise.all(
    asked.map(async ([url, secret]) => {
      const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
      await response.arrayBuffer();
      return response.status;
    }),
  );
}

const settled = (expected: number[], ...secrets: string[]) =>
  eventually(async () => (await statuses(...secrets)).join() === expected.join());

/** When each secret of a key ends, oldest secret first. */
async function ends({ id }: Issued): Promise<(number | null)[]> {
  const rows = await replicas[0]!.database.query<{ expires_at: Date | null }>(
    'SELECT expires_at FROM gateway_key_secret WHERE key_id = $1 ORDER BY id',
    [id],
  );
  return rows.map((row) => row.expires_at?.getTime() ?? null);
}

describe('a rotation', () => {
  it('lets old and new secret work during the grace, and ends the old one at its end', async () => {
    const old = await issue();
    expect(await statuses(old.key)).toEqual([200, 200]);
    const start = performance.now();
    const fresh = await rotate(old, { grace_seconds: 2 });
    const isOver = async () =>
      (
        await replicas[0]!.database.find<{ over: boolean }>(
          'SELECT bool_or(expires_at <= now()) AS over FROM gateway_key_secret WHERE key_id = $1',
          [old.id],
        )
      ).over;
    expect(fresh.id).toBe(old.id);
    expect(fresh.key).not.toBe(old.key);
    expect(fresh.prefix).toBe(fresh.key.slice(0, 12));
    const during = await statuses(old.key, fresh.key);
    // On a busy machine, the grace may be over before all have answered.
    if (performance.now() - start <= 2_000) expect(during).toEqual([200, 200, 200, 200]);
    await settled([401, 401, 200, 200], old.key, fresh.key);
    // Not before its time: by Postgres's clock the end has passed.
    expect(await isOver()).toBe(true);
  });

  it('ends the old secret at once when no grace is given, also where it is cached', async () => {
    const old = await issue();
    expect(await statuses(old.key)).toEqual([200, 200]);
    const fresh = await rotate(old);
    await settled([401, 401, 200, 200], old.key, fresh.key);
  });

  it('leaves at most two secrets that work, and names an older one that it ends', async () => {
    const one = await issue();
    const two = await rotate(one, { grace_seconds: 3_600 });
    expect(two.ended_secrets).toEqual([]);
    expect(await statuses(one.key, two.key)).toEqual([200, 200, 200, 200]);
    const three = await rotate(one, { grace_seconds: 86_400 });
    expect(three.ended_secrets).toEqual([one.prefix]);
    await settled([401, 401, 200, 200, 200, 200], one.key, two.key, three.key);
    const [first] = await ends(one);
    const four = await rotate(one);
    expect(four.ended_secrets).toEqual([two.prefix]);
    await settled([401, 401, 401, 401, 401, 401, 200, 200], one.key, two.key, three.key, four.key);
    // What has ended stays as it is.
    expect((await ends(one))[0]).toBe(first);
    const { data } = await admin<{ data: { after: object }[] }>('GET', `/audit?subject_id=${one.id}`);
    expect(data.map(({ after }) => (after as { ended_secrets?: string[] }).ended_secrets)).toEqual([
      [two.prefix],
      [one.prefix],
      undefined,
      undefined,
    ]);
  });

  it('is undone by a revocation, which ends both at once', async () => {
    const old = await issue();
    const fresh = await rotate(old, { grace_seconds: 3_600 });
    expect(await statuses(old.key, fresh.key)).toEqual([200, 200, 200, 200]);
    await admin('POST', `/keys/${old.id}/revoke`);
    await settled([401, 401, 401, 401], old.key, fresh.key);
  });

  it('gives each of many that come together a secret of its own; with no grace the last one works', async () => {
    const old = await issue();
    const made = await Promise.all(Array.from({ length: 6 }, () => rotate(old)));
    expect(new Set(made.map(({ key }) => key)).size).toBe(6);
    await eventually(async () => {
      const answers = await Promise.all(made.map(({ key }) => statuses(key)));
      return answers.filter(([status]) => status === 200).length === 1;
    });
  });

  it('leaves every secret under what is said of its key', async () => {
    const old = await issue();
    const fresh = await rotate(old, { grace_seconds: 3_600 });
    await admin('PATCH', `/keys/${old.id}`, { disabled: true });
    await settled([401, 401, 401, 401], old.key, fresh.key);
    await admin('PATCH', `/keys/${old.id}`, { disabled: false });
    await settled([200, 200, 200, 200], old.key, fresh.key);
    for (const name of ['another', 'third'])
      await admin('POST', '/providers', { name, url: 'http://127.0.0.1:9', secret: null });
    await admin('PATCH', `/keys/${old.id}`, { providers: ['another', 'third'] });
    await settled([403, 403, 403, 403], old.key, fresh.key);
  });

  it('ends and lets in again a team whose keys are cached', async () => {
    const made = await issue();
    expect(await statuses(made.key)).toEqual([200, 200]);
    const { data } = await admin<{ data: Issued[] }>('GET', '/teams');
    await admin('PATCH', `/teams/${data[0]!.id}`, { disabled: true });
    await settled([401, 401], made.key);
    await admin('PATCH', `/teams/${data[0]!.id}`, { disabled: false });
    await settled([200, 200], made.key);
  });
});
