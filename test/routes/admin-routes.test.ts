import { runHere } from '../cli/run-here.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
  await postern.storeProviders('one', 'two');
});
afterAll(() => postern.stop());

async function call(method: string, path: string, body?: unknown): Promise<{ status: number; body: string }> {
  const response = await fetch(`${postern.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.text() };
}

describe('/admin/v1/routes', () => {
  it('adds, lists, changes and removes routes', async () => {
    const targets = [{ provider: 'one' }, { provider: 'two', models: { a: 'b' } }];
    const shown = [
      { provider: 'one', models: null },
      { provider: 'two', models: { a: 'b' } },
    ];
    const made = await postern.admin('POST', '/routes', { name: 'main', targets });
    expect(made).toMatchObject({
      name: 'main',
      targets: shown,
      strategy: 'order',
      retry_on: ['connect', 'refused'],
      max_attempts: 2,
      dialect: 'any',
      default: false,
      version: 1,
    });
    expect(await postern.admin('PATCH', '/routes/main', { max_attempts: 3, retry_on: [] })).toMatchObject({
      max_attempts: 3,
      retry_on: [],
      version: 2,
    });
    expect(await postern.admin('PATCH', '/routes/main', { max_attempts: 3 })).toMatchObject({ version: 2 });
    const { data } = await postern.admin<{ data: { name: string }[] }>('GET', '/routes');
    expect(data.map(({ name }) => name)).toEqual(['main']);
    expect((await call('DELETE', '/routes/main')).status).toBe(204);
    expect((await call('GET', '/routes/main')).status).toBe(404);
  });

  it('has one space of names with providers, also for whoever writes to the tables', async () => {
    const target = { targets: [{ provider: 'one' }] };
    expect(await call('POST', '/routes', { name: 'two', ...target })).toMatchObject({ status: 409 });
    expect(await call('POST', '/routes', { name: 'default', ...target })).toMatchObject({ status: 409 });
    await postern.admin('POST', '/routes', { name: 'both', ...target });
    const provider = { name: 'both', url: 'http://127.0.0.1:9', secret: null };
    expect(await call('POST', '/providers', provider)).toMatchObject({ status: 409 });
    await expect(
      postern.database.query(
        "INSERT INTO provider (id, name, url) VALUES (gen_random_uuid(), 'both', 'http://127.0.0.1:9')",
      ),
    ).rejects.toThrow('a provider or a route has this name');
    await postern.createKey({ providers: ['both', 'one'] });
    await call('DELETE', '/routes/both');
  });

  it('keeps a provider that a route sends calls to', async () => {
    await postern.admin('POST', '/routes', { name: 'keeps', targets: [{ provider: 'one' }] });
    const kept = await call('DELETE', '/providers/one');
    expect(kept.status).toBe(409);
    expect(kept.body).toContain('keeps');
    await call('DELETE', '/routes/keeps');
  });

  it.each([
    [{ targets: [] }, 'targets'],
    [{ targets: [{ provider: 'nobody' }] }, 'there is no provider nobody'],
    [{ targets: [{ provider: 'one' }], max_attempts: 0 }, 'max_attempts'],
    [{ targets: [{ provider: 'one' }], retry_on: ['always'] }, 'retry_on'],
    [{ targets: [{ provider: 'one' }], strategy: 'random' }, 'strategy'],
    [{ targets: [{ provider: 'one', models: { a: 1 } }] }, 'models'],
  ])('rejects %j', async (settings, reason) => {
    const { status, body } = await call('POST', '/routes', { name: 'bad', ...settings });
    expect(status).toBe(400);
    expect(body).toContain(reason);
  });

  it('has one default', async () => {
    await postern.admin('POST', '/routes', { name: 'first', targets: [{ provider: 'one' }], default: true });
    await postern.admin('POST', '/routes', { name: 'second', targets: [{ provider: 'one' }], default: true });
    expect(await postern.admin('GET', '/routes/first')).toMatchObject({ default: false, version: 2 });
    for (const name of ['first', 'second']) await call('DELETE', `/routes/${name}`);
  });

  it('is there on the command line', async () => {
    const env = { DATABASE_URL: postern.database.url };
    const cli = (...args: string[]) => runHere(['routes', ...args], env);
    expect(
      (await cli('add', 'cli', '--targets', 'one', 'two:a=b,c=d', '--retry-on', 'none')).stdout,
    ).toContain('Added route cli (one, two:a=b,c=d).');
    expect((await cli('list')).stdout).toMatch(/^cli +one two:a=b,c=d +order +none +2 +no /m);
    expect((await cli('update', 'cli', '--strategy', 'spread')).code).toBe(0);
    expect((await cli('show', 'cli')).stdout).toMatch(/^strategy +spread$/m);

    const wrong = async (...args: string[]) => (await cli('update', 'cli', ...args)).stderr;
    expect(await wrong('--attempts', '0')).toBe('error: --attempts must be an integer from 1 to 10\n');
    expect(await wrong('--retry-on', 'never')).toBe('error: --retry-on must be connect, refused or failed\n');
    expect(await wrong('--targets', 'nobody')).toContain(
      'error: --targets: there is no provider nobody; add it',
    );

    await postern.admin('POST', '/keys', { team: 'default', name: 'limited', providers: ['cli'] });
    expect((await cli('remove', 'cli', '--yes')).stdout).toBe(
      'Removed route cli.\nKeys that are limited to it: default/limited. ' +
        'To change one: ./postern keys update <key> --providers <names>\n',
    );
  });
});
