import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { runCli } from '../cli/run-cli.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { GatewayProcess } from '../support/process.js';
import { Workplace } from '../support/workplace.js';

const ROOT = resolve(__dirname, '../..');

/** The build as in the image: a folder with node_modules, where packages of an operator's own can be installed. */
let workplace: Workplace;
let database: TestDatabase;
beforeAll(async () => {
  workplace = await Workplace.make();
  for (const part of ['dist/src', 'dist/migrations', 'package.json'])
    await cp(join(ROOT, part), join(workplace.folder, part), { recursive: true });
  await mkdir(join(workplace.folder, 'node_modules'));
  for (const name of await readdir(join(ROOT, 'node_modules')))
    if (!name.startsWith('.'))
      await symlink(join(ROOT, 'node_modules', name), join(workplace.folder, 'node_modules', name));
  await symlink('..', join(workplace.folder, 'node_modules/postern'));
  await write('node_modules/@acme/postern-quotas/package.json', JSON.stringify(MANIFEST));
  await write('node_modules/@acme/postern-quotas/index.js', QUOTAS);
});
afterAll(() => workplace.remove());
beforeEach(async () => {
  database = await createDatabase();
});
afterEach(() => database.drop());

// Without "default" or "require": as of a package that can only be imported.
const MANIFEST = {
  name: '@acme/postern-quotas',
  version: '1.2.3',
  type: 'module',
  exports: { import: './index.js' },
};

const QUOTAS = `
  import { Controller, ForbiddenException, Get, Inject, Module } from '@nestjs/common';
  import { TypeOrmModule } from '@nestjs/typeorm';
  import { Command } from 'commander';
  import { Column, DataSource, Entity, PrimaryColumn } from 'typeorm';
  import { z } from 'zod';
  import { ConfigModule, InjectSettings } from '../../../dist/src/config/config.module.js';
  import { PosternModule } from '../../../dist/src/postern.module.js';
  import { recordChange } from '../../../dist/src/audit/record-change.js';
  import { CallPolicy } from '../../../dist/src/proxy/policies/call-policy.js';

  class Quota {}
  Entity('quota')(Quota);
  PrimaryColumn('text')(Quota.prototype, 'name');
  Column('int')(Quota.prototype, 'tokens');

  class AddQuota1600000000000 {
    up(runner) { return runner.query('CREATE TABLE quota (name text PRIMARY KEY, tokens int NOT NULL)'); }
  }

  class QuotasController {
    constructor(dataSource, settings) { this.dataSource = dataSource; this.tokens = settings.moduleSettings.QUOTA_TOKENS; }
    list() {
      return this.dataSource.transaction(async (manager) => {
        await manager.save(Quota, { name: 'all', tokens: this.tokens });
        const after = { id: '01890a5d-ac96-774b-bcce-b302099a8057', name: 'all', tokens: this.tokens };
        const by = { name: 'test', address: null };
        await recordChange(manager, by, { action: 'granted', type: 'quota', before: null, after });
        return manager.find(Quota);
      });
    }
  }
  Controller('quotas')(QuotasController);
  Inject(DataSource)(QuotasController, undefined, 0);
  InjectSettings()(QuotasController, undefined, 1);
  Get()(QuotasController.prototype, 'list', Object.getOwnPropertyDescriptor(QuotasController.prototype, 'list'));

  class NoCalls {
    order = 1;
    admit() { throw new ForbiddenException('The quota is used up.'); }
  }
  CallPolicy()(NoCalls);

  export class QuotasModule {}
  Module({
    imports: [
      PosternModule.forFeature({
        name: 'quotas', migrations: [AddQuota1600000000000], subjects: ['quota'], actions: ['granted'],
        commands: [() => new Command('quotas').description('show the quotas').action(() => console.log('all: 5'))],
      }),
      ConfigModule.forFeature(z.object({ QUOTA_TOKENS: z.coerce.number().int() })),
      TypeOrmModule.forFeature([Quota]),
    ],
    controllers: [QuotasController],
    providers: [NoCalls],
  })(QuotasModule);
`;

async function write(path: string, text: string): Promise<void> {
  const file = join(workplace.folder, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

const start = (modules: string, env: Record<string, string> = {}) =>
  GatewayProcess.ofCheckout(workplace.folder, workplace.folder, {
    DATABASE_URL: database.url,
    DATA_DIR: workplace.dataDir,
    ADMIN_TOKEN,
    // The policy rejects each call before.
    PROVIDER_URL: 'http://127.0.0.1:9',
    PROVIDER_KEY: 'sk-0123456789',
    MODULES: modules,
    CONSOLE: 'off',
    ...env,
  });

it.each(['1', '2'])(
  'a package is loaded without a compiler by %s workers: controller, policy, entity, migration, setting, audit subject',
  async (workers) => {
    const gateway = start('@acme/postern-quotas', { QUOTA_TOKENS: '5', WORKERS: workers });
    const url = await gateway.ready();
    const quotas = await fetch(`${url}/quotas`);
    expect(await quotas.json()).toEqual([{ name: 'all', tokens: 5 }]);
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const audit = await fetch(`${url}/admin/v1/audit?subject_type=quota&action=granted`, { headers });
    expect(await audit.json()).toMatchObject({ data: [{ subject_name: 'all', after: { tokens: 5 } }] });
    expect(await database.query('SELECT name FROM migration_quotas')).toEqual([
      { name: 'AddQuota1600000000000' },
    ]);
    const system = (await (await fetch(`${url}/admin/v1/system`, { headers })).json()) as {
      modules: unknown;
    };
    expect(system.modules).toEqual([
      { name: '@acme/postern-quotas', version: '1.2.3', loaded_by: 'MODULES' },
    ]);
    const call = await fetch(`${url}/v1/models`, {
      headers: { authorization: `Bearer ${await gateway.firstKey()}` },
    });
    expect([call.status, await call.text()]).toEqual([403, expect.stringContaining('The quota is used up.')]);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  },
);

it('the module of the page is a call policy', async () => {
  const page = await readFile(join(ROOT, 'docs/develop/loaded-modules.md'), 'utf8');
  const [, code] = /```js\n([^]*?)```/.exec(page)!;
  await write('modules/closing-day.js', code!.replace('getUTCDay() === 0', 'getUTCDay() >= 0'));
  const gateway = start('./modules/closing-day.js');
  const url = await gateway.ready();
  const headers = { authorization: `Bearer ${await gateway.firstKey()}` };
  const call = await fetch(`${url}/v1/models`, { headers });
  expect([call.status, await call.text()]).toEqual([403, expect.stringContaining('Closed on Sundays.')]);
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
});

const cli = (args: string[], modules: string) =>
  runCli(args, { MODULES: modules }, workplace.folder, '', join(workplace.folder, 'dist/src/cli/start.js'));

it('adds the commands of a loaded module, also to the help', async () => {
  const quotas = '@acme/postern-quotas';
  expect(await cli(['quotas'], quotas)).toMatchObject({ code: 0, stdout: 'all: 5\n' });
  expect((await cli(['--help'], quotas)).stdout).toMatch(/^ {2}quotas +show the quotas$/m);
  expect((await cli(['quotas', '--help'], quotas)).stdout).toContain('postern quotas');
});

it('runs its own commands while a module is broken, and says which when its command is wanted', async () => {
  await write('modules/failing.js', 'throw new Error("not today")');
  expect(await cli(['completion', 'bash'], './modules/failing.js')).toMatchObject({ code: 0, stderr: '' });
  const { code, stderr } = await cli(['quotas'], './modules/failing.js');
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('error: MODULES: ./modules/failing.js cannot be loaded: Error: not today'),
  ]);
});

it('rejects a command that has the name of another one', async () => {
  await write(
    'modules/keys.js',
    `import { Module } from '@nestjs/common';
     import { Command } from 'commander';
     import { PosternModule } from '../dist/src/postern.module.js';
     export class Keys {}
     Module({ imports: [PosternModule.forFeature({ name: 'own_keys', commands: [() => new Command('keys')] })] })(Keys);`,
  );
  expect(await cli(['--help'], './modules/keys.js')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'error: a module adds the command "keys", which there is already; rename it\n',
  });
});

it('reports the settings of a loaded module with those of the gateway', async () => {
  const { process } = start('@acme/postern-quotas', { PORT: 'none' });
  expect((await process.ended).code).toBe(1);
  expect(process.stderr).toMatch(/PORT: must be[^]*QUOTA_TOKENS: must be set/);
});

const MODULE = `
  import { Module } from '@nestjs/common';
  export class Empty {}
  Module({ providers: [] })(Empty);`;

/** How the start of the gateway ends with modules that cannot be used. */
const stopping: [string, string, Record<string, string>, string][] = [
  [
    'throws',
    './modules/broken.js',
    { 'modules/broken.js': 'throw new Error("not today")' },
    'MODULES: ./modules/broken.js cannot be loaded: Error: not today',
  ],
  [
    'ends the process',
    './modules/exiting.js',
    { 'modules/exiting.js': 'process.exit(0)' },
    'MODULES: ./modules/exiting.js ended the process while it was loaded',
  ],
  ['has a name that leads elsewhere', '../elsewhere.js', {}, 'MODULES: must be names of packages'],
];

it.each(stopping)(
  'a module that %s stops the start with its name and the reason',
  async (_, names, files, reason) => {
    for (const [path, text] of Object.entries(files)) await write(path, text);
    const { process } = start(names);
    expect(await process.ended).toEqual({ code: 1, signal: null });
    expect(process.stderr).toContain(reason);
    expect(process.stdout).not.toContain('ready on');
  },
);

/** What else the loader rejects, in one process of the same folder. */
const rejected: [string, string, Record<string, string>, string][] = [
  ['is not found', 'postern-missing', {}, 'MODULES: postern-missing was not found below'],
  [
    'is a file that is not there',
    './modules/missing.js',
    {},
    'MODULES: ./modules/missing.js was not found below',
  ],
  [
    'exports no module',
    './modules/none.js',
    { 'modules/none.js': 'export const quotas = 1; export class Quotas {}' },
    'MODULES: ./modules/none.js exports no Nest module',
  ],
  [
    'exports several',
    './modules/two.js',
    { 'modules/two.js': `${MODULE} export class Other {} Module({ imports: [Empty] })(Other);` },
    'MODULES: ./modules/two.js exports several Nest modules (Empty, Other)',
  ],
  [
    'is named twice',
    './modules/one.js,./modules/one.js',
    { 'modules/one.js': MODULE },
    'MODULES: ./modules/one.js is already loaded, by the name ./modules/one.js',
  ],
  [
    'is part of the gateway',
    './modules/teams.js',
    { 'modules/teams.js': `export { TeamsModule } from '../dist/src/teams/teams.module.js';` },
    'MODULES: ./modules/teams.js is already loaded, by the application',
  ],
  [
    'would use another Nest',
    'postern-other-nest',
    {
      'node_modules/postern-other-nest/package.json': '{"type":"module","exports":"./index.js"}',
      'node_modules/postern-other-nest/index.js': MODULE,
      'node_modules/postern-other-nest/node_modules/@nestjs/core/package.json':
        '{"type":"module","exports":"./index.js"}',
      'node_modules/postern-other-nest/node_modules/@nestjs/core/index.js': '',
    },
    'MODULES: postern-other-nest would use another Nest, ',
  ],
  [
    'would use another Postern',
    'postern-other-postern',
    {
      'node_modules/postern-other-postern/package.json': '{"type":"module","exports":"./index.js"}',
      'node_modules/postern-other-postern/index.js': MODULE,
      'node_modules/postern-other-postern/node_modules/postern/package.json': '{}',
    },
    'MODULES: postern-other-postern would use another Postern, ',
  ],
];

/** Loads each list of modules as the start does. */
const LOAD_EACH = `
  import { withLoadedModules } from './dist/src/runtime/loaded-modules.js';
  import { AppModule } from './dist/src/app.module.js';
  const messages = [];
  for (const names of JSON.parse(process.argv[2]))
    messages.push(await withLoadedModules(AppModule, names).then(() => 'loaded', (error) => error.message));
  console.log(JSON.stringify(messages));`;

it('a module that cannot be used is rejected with its name and the reason', async () => {
  for (const [, , files] of rejected)
    for (const [path, text] of Object.entries(files)) await write(path, text);
  await write('load-each.mjs', LOAD_EACH);
  const lists = rejected.map(([, names]) => names.split(','));
  const { stdout } = await promisify(execFile)(process.execPath, ['load-each.mjs', JSON.stringify(lists)], {
    cwd: workplace.folder,
  });
  const messages = JSON.parse(stdout) as string[];
  expect(Object.fromEntries(rejected.map(([what], at) => [what, messages[at]]))).toEqual(
    Object.fromEntries(rejected.map(([what, , , reason]) => [what, expect.stringContaining(reason)])),
  );
});
