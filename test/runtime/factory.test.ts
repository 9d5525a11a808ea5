import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Controller, Get, Module, type OnModuleDestroy } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { v7 as uuidv7 } from 'uuid';
import { z } from 'zod';
import { ConfigModule, InjectSettings } from '../../src/config/config.module.js';
import type { PosternOptions } from '../../src/config/env.js';
import type { Settings } from '../../src/config/settings.js';
import { PosternModule } from '../../src/postern.module.js';
import { PosternFactory } from '../../src/runtime/postern-factory.js';
import { runDirectoryName } from '../../src/request-log/journal/run-directories.js';
import { linesOf, recordsOf } from '../request-log/journal-calls.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { testOptions } from '../support/settings.js';

let database: TestDatabase;
let provider: RawProvider;
let options: PosternOptions & { dataDir: string };
let app: NestExpressApplication | undefined;
let printed = '';
/** What the provider waits for before it responds. */
let answering = Promise.resolve();
beforeEach(async () => {
  printed = '';
  jest.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  database = await createDatabase();
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    await answering;
    socket.write(answer('200 OK', ['Content-Type: application/json'], '{"choices":[]}'));
  });
  options = await testOptions(database, { providerUrl: provider.url, providerKey: 'sk-0123456789' });
});
afterEach(async () => {
  await app?.close();
  app = undefined;
  jest.restoreAllMocks();
  await provider.stop();
  await database.drop();
  await rm(options.dataDir, { recursive: true });
});

const events: string[] = [];

@Controller('hello')
class HelloController {
  constructor(@InjectSettings() private readonly settings: Settings) {}

  @Get()
  hello(): string {
    return `${this.settings.logLevel} ${String(this.settings.moduleSettings['GREETING'])}`;
  }
}

@Module({
  imports: [ConfigModule.forFeature(z.object({ GREETING: z.string().default('hello') }))],
  controllers: [HelloController],
})
class HelloModule implements OnModuleDestroy {
  onModuleDestroy(): void {
    events.push('module destroyed');
  }
}

@Module({ imports: [PosternModule.forRoot({ logLevel: 'error' }), HelloModule] })
class OwnModule {}

const create = (settings: PosternOptions = options) => PosternFactory.create(OwnModule, { settings });

const key = () => eventually(() => /ptn_\w+/.exec(printed)?.[0]);

const callWith = (url: string, key: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{"model":"gpt-4o","messages":[]}',
  });

it('makes an application that serves by app.listen(), set up as in the documentation of Nest', async () => {
  app = await create();
  app.enableCors({ origin: 'https://app.example' });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  await eventually(() => printed.includes(`ready on ${url}`));
  const response = await callWith(url, await key());
  expect([response.status, await response.text()]).toEqual([200, '{"choices":[]}']);
  const hello = await fetch(`${url}/hello`);
  // The settings of create() win over those of the module.
  expect([await hello.text(), hello.headers.get('access-control-allow-origin')]).toEqual([
    'fatal hello',
    'https://app.example',
  ]);
  const teams = await fetch(`${url}/admin/v1/teams`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  expect(teams.status).toBe(200);
});

it('lets calls end before modules are destroyed, and leaves DATA_DIR to the next one', async () => {
  const { promise, resolve } = deferred();
  answering = promise;
  app = await create({ ...options, shutdownGraceMs: 60_000 });
  await app.listen(0, '127.0.0.1');
  // On its socket: fetch may hand the response over only after the gateway has seen the end of the call.
  const client = await RawClient.connect(Number(new URL(await app.getUrl()).port));
  const headers = [`Authorization: Bearer ${await key()}`, 'Content-Type: application/json'];
  client.send(request('POST /v1/chat/completions', headers, '{"model":"gpt-4o","messages":[]}'));
  const calling = client.answer().then(({ body }) => {
    events.push('call ended');
    return body.toString();
  });
  while (provider.requests.length === 0) await new Promise(setImmediate);
  events.length = 0;
  await expect(create()).rejects.toThrow('another Postern');
  const closing = app.close();
  app = undefined;
  resolve();
  expect(await calling).toBe('{"choices":[]}');
  await closing;
  expect(events).toEqual(['call ended', 'module destroyed']);
  answering = Promise.resolve();
  app = await create();
});

it('writes the journals that each process of a run with several workers has left', async () => {
  const workers = 4;
  // Makes DATA_DIR.
  app = await create();
  await app.close();
  const journal = join(options.dataDir, 'journal');
  const ids: string[] = [];
  for (let worker = 1; worker <= workers; worker++) {
    const folder = join(journal, runDirectoryName(uuidv7(), worker));
    await mkdir(folder, { recursive: true });
    const records = recordsOf('read');
    await writeFile(join(folder, '000001.log'), Buffer.concat(linesOf(records)));
    ids.push(records[0]!.id);
  }
  // The settings of the run are still those of the environment.
  app = await create({ ...options, workers, journalKeepMs: 0 });
  await app.listen(0, '127.0.0.1');
  const row = (id: string) => database.find<{ id: string }>('SELECT id FROM request_log WHERE id = $1', [id]);
  expect((await Promise.all(ids.map(row))).map(({ id }) => id)).toEqual(ids);
  const runs = async () => (await readdir(journal)).filter((name) => !name.startsWith('reserve'));
  // A journal is removed after its rows are committed; the one that is left is its own.
  await eventually(async () => (await runs()).length <= 1);
  await app.close();
  app = undefined;
  expect(await runs()).toEqual([]);
});

it('rejects what would break calls', async () => {
  app = await create();
  const own = app;
  expect(() => own.useBodyParser('json')).toThrow('would read the bodies of calls');
  app.setGlobalPrefix('api');
  await expect(app.listen(0, '127.0.0.1')).rejects.toThrow('setGlobalPrefix()');
});

it('names what is missing or wrong', async () => {
  const { databaseUrl: _, ...without } = options;
  await expect(create(without)).rejects.toThrow('DATABASE_URL: must be set');
  const misspelt = { ...options, prot: 1 } as PosternOptions;
  await expect(create(misspelt)).rejects.toThrow('prot: is not an option');
  await expect(create({ ...options, port: 'none' })).rejects.toThrow('PORT: must be an integer');
  const empty = { ...options, providerKey: null } as unknown as PosternOptions;
  await expect(create(empty)).rejects.toThrow('providerKey: must be a string or a number');
  await expect(PosternFactory.create(HelloModule)).rejects.toThrow('add PosternModule.forRoot()');
  @Module({ imports: [OwnModule, PosternModule.forRoot()] })
  class Twice {}
  await expect(PosternFactory.create(Twice)).rejects.toThrow('more than once');
});

it('keeps an option of the module that another place gives as undefined', async () => {
  app = await create({ ...options, logLevel: undefined });
  await app.listen(0, '127.0.0.1');
  expect(await (await fetch(`${await app.getUrl()}/hello`)).text()).toBe('error hello');
});

it('says on which address nobody can listen', async () => {
  app = await create();
  const port = Number(new URL(provider.url).port);
  await expect(app.listen(port, '127.0.0.1')).rejects.toThrow('is in use by another process');
});
