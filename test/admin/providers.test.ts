import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';

interface Answer {
  status: number;
  etag: string | null;
  body: {
    data?: Record<string, unknown>[];
    error?: { message: string; code: string; details: { field: string; message: string }[] };
    [field: string]: unknown;
  };
}

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

const URL_1 = 'https://api.example.com';
let names = 0;
const fresh = () => `p-${++names}`;

async function call(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  { url } = postern,
): Promise<Answer> {
  const response = await fetch(`${url}/admin/v1/providers${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    etag: response.headers.get('etag'),
    body: (text === '' ? {} : JSON.parse(text)) as Answer['body'],
  };
}

async function add(settings: object = {}): Promise<{ name: string; etag: string }> {
  const name = fresh();
  const { status, etag } = await call('POST', '', { name, url: URL_1, secret: 'sk-secret', ...settings });
  expect(status).toBe(201);
  return { name, etag: etag! };
}

const fieldsOf = ({ body }: Answer) => body.error!.details.map(({ field }) => field);

describe('/admin/v1/providers', () => {
  it('adds a provider with every default, and never shows its secret', async () => {
    const name = fresh();
    const { status, body } = await call('POST', '', { name, url: `${URL_1}/`, secret: 'sk-very-secret' });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      name,
      url: URL_1,
      auth: 'bearer',
      auth_settings: null,
      secret_state: 'sealed',
      default: false,
      shadowed_by: null,
      enabled: true,
      catalog: null,
      on_disconnect: 'cancel',
      team: null,
      source: 'stored',
      version: 1,
      created_at: expect.stringMatching(/Z$/) as string,
      updated_at: expect.stringMatching(/Z$/) as string,
    });
    const shown = await call('GET', `/${name}`);
    expect([shown.status, shown.body]).toEqual([200, body]);
    const list = await call('GET', '');
    expect(list.body.next_cursor).toBeNull();
    expect(list.body.data).toContainEqual(body);
    expect(JSON.stringify([shown, list])).not.toContain('sk-very-secret');
  });

  it.each([
    [{ name: undefined }, 'name'],
    [{ name: 'Not A Name' }, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(64) }, 'name'],
    [{ url: undefined }, 'url'],
    [{ url: 'api.example.com' }, 'url'],
    [{ url: `${URL_1}/v1` }, 'url'],
    [{ url: 'http://169.254.169.254' }, 'url'],
    [{ url: 'http://8.8.8.8' }, 'url'],
    [{ url: 'https://user:sk-secret@api.example.com' }, 'url'],
    [{ url: 'https://api.example.com?key=sk-secret' }, 'url'],
    [{ auth: 'basic' }, 'auth'],
    [{ secret: undefined }, 'secret'],
    [{ secret: '' }, 'secret'],
    [{ secret: 'sk-secret with spaces' }, 'secret'],
    [{ secret: 'sk-secret\r\nx: y' }, 'secret'],
    [{ secret: 'sk-secrét' }, 'secret'],
    [{ secret: ['sk-secret'] }, 'secret'],
    [{ default: 'yes' }, 'default'],
    [{ enabled: 1 }, 'enabled'],
    [{ key: 'sk-secret' }, 'key'],
  ])('rejects %j, names the field and repeats no value', async (part, field) => {
    const answer = await call('POST', '', { name: 'rejected', url: URL_1, secret: 'sk-secret', ...part });
    expect([answer.status, answer.body.error?.code]).toEqual([400, 'invalid_request']);
    expect(fieldsOf(answer)).toEqual([field]);
    expect(JSON.stringify(answer.body)).not.toContain('sk-secr');
  });

  it('needs a secret, or null, unless callers send their own credential', async () => {
    const without = await call('POST', '', { name: 'forgotten', url: URL_1 });
    expect([without.status, fieldsOf(without)]).toEqual([400, ['secret']]);
    const client = await call('POST', '', { name: 'own-credential', url: URL_1, auth: 'client' });
    expect([client.status, client.body.secret_state]).toEqual([201, 'none']);
  });

  it('says which url would be right', async () => {
    const answer = await call('POST', '', {
      name: 'x',
      url: 'https://api.groq.com/openai/v1/',
      secret: null,
    });
    expect(answer.body.error!.message).toContain('Use https://api.groq.com/openai');
  });

  it('answers 409 for a name that is taken or reserved', async () => {
    const { name } = await add();
    for (const [taken, word] of [
      [name, 'already exists'],
      ['default', 'reserved'],
    ] as const) {
      const answer = await call('POST', '', { name: taken, url: URL_1, secret: null });
      expect([answer.status, answer.body.error?.code, fieldsOf(answer)]).toEqual([409, 'conflict', ['name']]);
      expect(answer.body.error!.message).toContain(word);
    }
  });

  it.each(['nobody', 'default', 'UPPER', '%F0%9F%92%A9', 'a%20b', 'x'.repeat(300)])(
    'finds no provider %s',
    async (name) => {
      for (const answer of [
        await call('GET', `/${name}`),
        await call('PATCH', `/${name}`, { enabled: false }),
        await call('DELETE', `/${name}`),
        await call('POST', `/${name}/test`),
      ]) {
        expect([answer.status, answer.body.error?.code]).toEqual([404, 'not_found']);
      }
    },
  );

  it('changes what is given and nothing else', async () => {
    const { name } = await add({ auth: 'api-key', default: true });
    const { body } = await call('PATCH', `/${name}`, { url: `${URL_1}/base/`, enabled: false });
    expect(body).toMatchObject({
      url: `${URL_1}/base`,
      auth: 'api-key',
      secret_state: 'sealed',
      default: true,
      enabled: false,
      version: 2,
    });
    expect((await call('PATCH', `/${name}`, { secret: null })).body).toMatchObject({
      secret_state: 'none',
      version: 3,
    });
    for (const nothing of [{}, { secret: null }, { auth: 'api-key', default: true, enabled: false }]) {
      expect((await call('PATCH', `/${name}`, nothing)).body).toMatchObject({ version: 3 });
    }
    await call('PATCH', `/${name}`, { default: false });
    for (const part of [{ name: 'other' }, { id: 'x' }, { secret: 'a b' }, { url: 'nonsense' }]) {
      const answer = await call('PATCH', `/${name}`, part);
      expect([answer.status, fieldsOf(answer)]).toEqual([400, Object.keys(part)]);
    }
  });

  it('sends a stored secret to no other host than it was stored for', async () => {
    const { name } = await add();
    for (const url of ['https://thief.example', 'https://api.example.com:8443', 'http://10.0.0.1']) {
      const answer = await call('PATCH', `/${name}`, { url });
      expect([answer.status, fieldsOf(answer)]).toEqual([400, ['secret']]);
    }
    expect((await call('GET', `/${name}`)).body).toMatchObject({ url: URL_1, version: 1 });
    expect((await call('PATCH', `/${name}`, { url: 'https://b.example', secret: 'sk-b' })).status).toBe(200);
    expect((await call('PATCH', `/${name}`, { url: 'https://c.example', secret: null })).status).toBe(200);
    expect((await call('PATCH', `/${name}`, { url: 'https://d.example' })).status).toBe(200);
  });

  it('lets one of two admins who change the same state win, and tells the other', async () => {
    const { name, etag } = await add();
    const changes = ['api-key', 'x-api-key', 'x-goog-api-key'].map((auth) =>
      call('PATCH', `/${name}`, { auth }, { 'if-match': etag }),
    );
    const answers = await Promise.all(changes);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const lost = answers.find(({ status }) => status === 409)!;
    expect(lost.body.error!.message).toContain('read it again');
    const won = answers.find(({ status }) => status === 200)!;
    expect((await call('GET', `/${name}`)).body).toEqual(won.body);
    expect((await call('DELETE', `/${name}`, undefined, { 'if-match': etag })).status).toBe(409);
    expect((await call('DELETE', `/${name}`, undefined, { 'if-match': won.etag! })).status).toBe(204);
  });

  it('lets two admins who change different things without If-Match both win', async () => {
    const { name } = await add();
    await Promise.all([
      call('PATCH', `/${name}`, { auth: 'api-key' }),
      call('PATCH', `/${name}`, { enabled: false }),
    ]);
    expect((await call('GET', `/${name}`)).body).toMatchObject({
      auth: 'api-key',
      enabled: false,
      version: 3,
    });
  });

  it('tells a provider from one that was deleted and added again under its name', async () => {
    const { name, etag } = await add();
    expect((await call('DELETE', `/${name}`)).status).toBe(204);
    await call('POST', '', { name, url: URL_1, secret: null });
    expect((await call('PATCH', `/${name}`, { enabled: false }, { 'if-match': etag })).status).toBe(409);
  });

  it.each([
    ['*', 200],
    ['"nonsense"', 409],
    ['"a", ETAG', 200],
    ['W/ETAG', 409],
    ['1', 400],
    ['"', 400],
  ])('understands If-Match: %s', async (value, status) => {
    const { name, etag } = await add();
    const headers = { 'if-match': value.replace('ETAG', etag) };
    expect((await call('PATCH', `/${name}`, { enabled: false }, headers)).status).toBe(status);
  });

  it('has one default, also when ten are made so at once', async () => {
    const made = await Promise.all(Array.from({ length: 10 }, () => add()));
    const changed = await Promise.all(made.map(({ name }) => call('PATCH', `/${name}`, { default: true })));
    expect(changed.map(({ status }) => status)).toEqual(Array(10).fill(200));
    const { body } = await call('GET', '');
    expect(body.data!.filter((provider) => provider.default)).toHaveLength(1);
    expect((await add({ default: true })).name).toBeDefined();
    const after = await call('GET', '');
    expect(after.body.data!.filter((provider) => provider.default)).toHaveLength(1);
  });

  it('leaves a record of each change, also of the provider that the default was taken from', async () => {
    const [one, other] = [await add({ default: true }), await add()];
    await call('PATCH', `/${other.name}`, { default: true, secret: 'sk-recorded' });
    await call('PATCH', `/${other.name}`, { default: true });
    await call('DELETE', `/${other.name}`);
    const records = async (name: string) => {
      const { data } = await postern.admin<{ data: Record<string, unknown>[] }>(
        'GET',
        `/audit?subject_type=provider&subject_name=${name}`,
      );
      return data.map(({ action, before, after }) => ({ action, before, after }));
    };
    const before = expect.objectContaining({ url: URL_1, default: true, secret_state: 'sealed' }) as object;
    expect(await records(other.name)).toEqual([
      { action: 'removed', before, after: null },
      { action: 'changed', before: { default: false }, after: { default: true, secret: 'changed' } },
      { action: 'created', before: null, after: expect.objectContaining({ default: false }) as object },
    ]);
    expect((await records(one.name))[0]).toEqual({
      action: 'changed',
      before: { default: true },
      after: { default: false },
    });
  });

  it('shows the provider of the environment first and changes nothing about it', async () => {
    const own = await startTestGateway({ PROVIDER_URL: 'https://own.example' }, postern.database);
    const list = await call('GET', '', undefined, {}, own);
    expect(list.body.data![0]).toEqual({
      id: null,
      name: 'default',
      url: 'https://own.example',
      auth: 'bearer',
      auth_settings: null,
      secret_state: 'environment',
      default: true,
      shadowed_by: null,
      enabled: true,
      catalog: null,
      on_disconnect: 'cancel',
      team: null,
      source: 'environment',
      version: null,
      created_at: null,
      updated_at: null,
    });
    expect((await call('GET', '/default', undefined, {}, own)).body).toEqual(list.body.data![0]);
    // The stored default is shown as what it is while PROVIDER_URL is set: one provider is the default, not two.
    const { name } = await add({ default: true });
    const beside = await call('GET', `/${name}`, undefined, {}, own);
    expect(beside.body).toMatchObject({ default: false, shadowed_by: 'PROVIDER_URL' });
    const both = (await call('GET', '', undefined, {}, own)).body.data!;
    expect(both.filter((provider) => provider.default).map((provider) => provider.name)).toEqual(['default']);
    expect(both.find((provider) => provider.name === name)).toEqual(beside.body);
    const changed = await call('PATCH', `/${name}`, { auth: 'api-key' }, {}, own);
    expect(changed.body).toMatchObject({ auth: 'api-key', default: false, shadowed_by: 'PROVIDER_URL' });
    // The change kept what is stored.
    expect((await call('GET', `/${name}`)).body).toMatchObject({ default: true, shadowed_by: null });
    const last = await call('POST', '', { name: 'last', url: URL_1, secret: null, default: true }, {}, own);
    expect(last.body).toMatchObject({ default: false, shadowed_by: 'PROVIDER_URL' });
    expect((await call('GET', `/${name}`)).body).toMatchObject({ default: false, shadowed_by: null });
    for (const answer of [
      await call('PATCH', '/default', { enabled: false }, {}, own),
      await call('DELETE', '/default', undefined, {}, own),
    ]) {
      expect([answer.status, answer.body.error?.message]).toEqual([
        409,
        expect.stringContaining('PROVIDER_URL') as string,
      ]);
    }
    await own.stop();
  });

  it('is closed to everybody without the admin token', async () => {
    const { name } = await add();
    for (const authorization of ['', `Bearer ${postern.key}`]) {
      for (const [method, path] of [
        ['GET', ''],
        ['POST', ''],
        ['GET', `/${name}`],
        ['PATCH', `/${name}`],
        ['DELETE', `/${name}`],
        ['POST', `/${name}/test`],
      ] as const) {
        expect((await call(method, path, undefined, { authorization })).status).toBe(401);
      }
    }
    expect((await call('GET', `/${name}`)).status).toBe(200);
  });
});
