import { existsSync } from 'node:fs';
import { Controller, Get, Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import pg from 'pg';
import { z } from 'zod';
import { ConfigModule, InjectSettings, SETTINGS } from '../../src/config/config.module.js';
import type { Settings } from '../../src/config/settings.js';
import { PosternModule } from '../../src/postern.module.js';
import { createDatabase, FakeProvider, startGateway } from '../../src/testing/index.js';
import { deferred } from '../support/deferred.js';

const events: string[] = [];

@Injectable()
class Greeting {
  constructor(@InjectSettings() private readonly settings: Settings) {}

  text(): string {
    return String(this.settings.moduleSettings['GREETING']);
  }
}

@Controller('hello')
class HelloController {
  constructor(private readonly greeting: Greeting) {}

  @Get()
  hello(): string {
    return this.greeting.text();
  }
}

@Module({
  imports: [ConfigModule.forFeature(z.object({ GREETING: z.string().default('hello') }))],
  controllers: [HelloController],
  providers: [Greeting],
})
class HelloModule implements OnModuleDestroy {
  onModuleDestroy(): void {
    events.push('module destroyed');
  }
}

let provider: FakeProvider;
beforeEach(async () => {
  provider = await FakeProvider.start();
  events.length = 0;
});
afterEach(() => provider.stop());

const callWith = (url: string, key: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{"model":"m"}',
  });

const text = async (url: string) => (await fetch(url)).text();

async function exists(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  return client.connect().then(
    () => client.end().then(() => true),
    ({ code }: { code?: string }) => code !== '3D000',
  );
}

it('serves calls with modules of an application, and leaves nothing', async () => {
  const postern = await startGateway({
    modules: [HelloModule],
    settings: { providerUrl: provider.url },
    variables: { GREETING: 'good day' },
  });
  const dataDir = postern.app.get<Settings>(SETTINGS).dataDir;
  expect(await text(`${postern.url}/hello`)).toBe('good day');
  const response = await callWith(postern.url, postern.key);
  expect(response.status).toBe(200);
  const row = await postern.row(response.headers.get('x-gateway-request-id')!);
  expect([row.outcome, row['prompt_tokens'], row['completion_tokens']]).toEqual(['completed', 3, 2]);
  const key = await postern.createKey({ models: ['other'] });
  expect((await callWith(postern.url, key)).status).toBe(403);
  expect(await postern.admin('GET', '/teams')).toMatchObject({ data: [{ name: 'default' }] });
  expect(await postern.admin('POST', '/session', { token: postern.adminToken })).toBeUndefined();
  await expect(postern.admin('GET', '/nothing')).rejects.toThrow('GET /nothing: 404');
  await expect(postern.row('01890a5d-ac96-774b-bcce-b302099a8057', 1)).rejects.toThrow('no row of the call');
  await postern.stop();
  await postern.stop();
  expect(events).toEqual(['module destroyed']);
  expect([await exists(postern.database.url), existsSync(dataDir)]).toEqual([false, false]);
});

it('takes the root module of an application; settings of the test win over its own', async () => {
  @Module({ imports: [PosternModule.forRoot({ port: 1, adminToken: 'of-the-application-0' }), HelloModule] })
  class AppModule {}
  const database = await createDatabase();
  const settings = { adminPort: 0, adminToken: 'of-the-test-0123456789' };
  const postern = await startGateway({ root: AppModule, settings, database });
  expect(postern.adminToken).toBe('of-the-test-0123456789');
  expect(postern.adminUrl).not.toBe(postern.url);
  await postern.admin('POST', '/teams', { name: 'a' });
  await postern.stop();
  const replica = await startGateway({ root: AppModule, database });
  expect((await replica.admin<{ data: object[] }>('GET', '/teams')).data).toHaveLength(2);
  await replica.stop();
  await database.drop();
});

it('replaces providers, and then drains and stops as any gateway', async () => {
  const { promise, resolve } = deferred();
  provider.respond(async () => {
    await promise;
    return { body: 'late' };
  });
  const postern = await startGateway({
    modules: [HelloModule],
    settings: { providerUrl: provider.url, logLevel: 'fatal', shutdownGraceMs: 60_000 },
    override: (builder) => builder.overrideProvider(Greeting).useValue({ text: () => 'replaced' }),
    setup: (app) => void app.enableCors({ origin: 'https://app.example' }),
  });
  const hello = await fetch(`${postern.url}/hello`);
  expect([await hello.text(), hello.headers.get('access-control-allow-origin')]).toEqual([
    'replaced',
    'https://app.example',
  ]);
  const calling = callWith(postern.url, postern.key);
  while (provider.requests.length === 0) await new Promise(setImmediate);
  const stopping = postern.stop();
  resolve();
  expect(await (await calling).text()).toBe('late');
  await stopping;
  expect(events).toEqual(['module destroyed']);
});

it('fails as a start does, and leaves nothing', async () => {
  const database = await createDatabase();
  await expect(startGateway({ settings: { workers: 'many' }, database })).rejects.toThrow('WORKERS');
  await expect(startGateway({ root: HelloModule, database })).rejects.toThrow('add PosternModule.forRoot()');
  await expect(startGateway({ root: HelloModule, modules: [HelloModule] })).rejects.toThrow('either modules');
  const override = () => {
    throw new Error('not this one');
  };
  await expect(startGateway({ override, database })).rejects.toThrow('not this one');
  const open = await database.query(
    "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'postern%'" +
      ' AND datname = current_database()',
  );
  expect(open).toEqual([]);
  await database.drop();
});
