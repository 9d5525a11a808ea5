import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import ts from 'typescript';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { Process } from '../support/process.js';
import { runCli } from './run-cli.js';

const ROOT = resolve(__dirname, '../..');
/** As in a project, where postern is installed: not the bundle. */
const MAIN = join(ROOT, 'dist/src/cli/main.js');

let folder: string;
/** Where databases are created: by a role of this file's own, so that no other test's is counted. */
let database: TestDatabase;
let server: string;
const ROLE = `migrator_${process.pid}`;
beforeAll(async () => {
  database = await createDatabase({ empty: true });
  await database.query(`CREATE ROLE ${ROLE} LOGIN CREATEDB PASSWORD 'secret'`);
  const url = new URL(database.url);
  [url.username, url.password] = [ROLE, 'secret'];
  server = url.href;
});
afterAll(async () => {
  await database.query(`DROP ROLE ${ROLE}`);
  await database.drop();
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-project-'));
  await mkdir(join(folder, 'node_modules'));
  for (const name of await readdir(join(ROOT, 'node_modules')))
    if (!name.startsWith('.'))
      await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  await symlink(ROOT, join(folder, 'node_modules/postern'));
  await write('package.json', '{ "type": "module", "postern": { "app": "./dist/app.module.js" } }');
  await write('src/widget.entity.ts', ENTITY);
  await write('src/app.module.ts', app(''));
  await build();
});
afterEach(() => rm(folder, { recursive: true }));

const ENTITY = `
  import { Column, Entity, PrimaryColumn } from 'typeorm';

  @Entity('widget', { comment: \`What can\\n  be "had" for $1\` })
  export class Widget {
    @PrimaryColumn('uuid', { primaryKeyConstraintName: 'widget_pkey' })
    id!: string;
    @Column('text', { default: '\`\${1}\`' })
    name!: string;
  }
`;

/** @param migrations of the module of widgets, with the folder's name for each */
function app(migrations: string, lines = ''): string {
  return `
    import { Module } from '@nestjs/common';
    import { TypeOrmModule } from '@nestjs/typeorm';
    import { Entity, PrimaryColumn } from 'typeorm';
    import { PosternModule } from 'postern';
    import { Widget } from './widget.entity.js';
    ${lines}

    // Of another database.
    @Entity('elsewhere')
    class Elsewhere {
      @PrimaryColumn('uuid')
      id!: string;
    }

    @Module({
      imports: [
        PosternModule.forRoot(),
        PosternModule.forFeature({ name: 'widgets', migrations: [${migrations}] }),
        TypeOrmModule.forFeature([Widget]),
        TypeOrmModule.forFeature([Elsewhere], 'elsewhere'),
      ],
    })
    export class AppModule {}
  `;
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), text);
}

/** As the project's compiler does. */
async function build(): Promise<void> {
  const files = await readdir(join(folder, 'src'), { recursive: true });
  const compilerOptions: ts.CompilerOptions = {
    module: ts.ModuleKind.ESNext,
    target: ts.ScriptTarget.ES2022,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  for (const file of files.filter((name) => name.endsWith('.ts'))) {
    const text = await readFile(join(folder, 'src', file), 'utf8');
    const { outputText } = ts.transpileModule(text, { compilerOptions });
    await write(join('dist', file.replace(/ts$/, 'js')), outputText);
  }
}

const generate = (name: string, env: Record<string, string> = { DATABASE_URL: server }) =>
  runCli(['migration', 'generate', name], env, folder, '', MAIN);

const databases = () => database.query(`SELECT datname FROM pg_database WHERE datdba = '${ROLE}'::regrole`);
const migrations = async () => (await readdir(join(folder, 'src'))).includes('migrations');

it('writes what the entities of the application need, which its module then brings', async () => {
  const { code, stdout, stderr } = await generate('AddWidgets');
  expect([code, stderr]).toEqual([0, 'running the migrations in a scratch database\n']);
  const [, path, className] =
    /^Wrote (src\/migrations\/\d{13}-add-widgets\.ts)\.[^]*migrations: \[(\w+)\]/.exec(stdout)!;
  const text = await readFile(join(folder, path!), 'utf8');
  expect(text).toBe(`import type { MigrationInterface, QueryRunner } from 'typeorm';

export class ${className} implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(\`
      CREATE TABLE "widget" (
        "id" uuid NOT NULL,
        "name" text NOT NULL DEFAULT '\\\`\\\${1}\\\`',
        CONSTRAINT "widget_pkey" PRIMARY KEY ("id")
      )
    \`);
    await queryRunner.query(\`COMMENT ON TABLE "widget" IS 'What can
  be "had" for $1'\`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(\`COMMENT ON TABLE "widget" IS NULL\`);
    await queryRunner.query(\`DROP TABLE "widget"\`);
  }
}
`);

  // Before a module brings it, it would be generated again.
  expect(await generate('AddWidgetsAgain')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining(
      `${path}: no module brings ${className}; add it to the migrations`,
    ) as string,
  });
  const file = `./migrations/${path!.slice('src/migrations/'.length).replace(/ts$/, 'js')}`;
  await write('src/app.module.ts', app(className!, `import { ${className} } from '${file}';`));
  await build();
  expect(await generate('AddNothing')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^No changes: /) as string,
  });
  expect(await readdir(join(folder, 'src/migrations'))).toHaveLength(1);
  expect(await databases()).toEqual([]);
}, 600_000);

it('drops the scratch database when a migration fails', async () => {
  const failing = `class Failing1600000000000 { up(runner: any) { return runner.query('SELECT no_such_function()'); } }`;
  await write('src/app.module.ts', app('Failing1600000000000 as never', failing));
  await build();
  const { code, stderr } = await generate('AddWidgets');
  expect(code).toBe(1);
  expect(stderr).toContain('migrations of the module widgets: function no_such_function() does not exist');
  expect([await databases(), await migrations()]).toEqual([[], false]);
});

it('drops it when a signal ends the command', async () => {
  const slow = `class Slow1600000000000 { up(runner: any) { console.error('slow'); return runner.query('SELECT pg_sleep(600)'); } }`;
  await write('src/app.module.ts', app('Slow1600000000000 as never', slow));
  await build();
  const env = { PATH: process.env.PATH, DATABASE_URL: server };
  const command = new Process(process.execPath, [MAIN, 'migration', 'generate', 'Add'], { cwd: folder, env });
  await command.until(/slow/);
  command.signal('SIGTERM');
  expect(await command.ended).toEqual({ code: 1, signal: null });
  expect(command.stderr).toMatch(/^error: interrupted$/m);
  expect(await databases()).toEqual([]);
});

it('says what to do where the user may not create databases', async () => {
  await database.query(`ALTER ROLE ${ROLE} NOCREATEDB`);
  const { code, stdout, stderr } = await generate('AddWidgets');
  await database.query(`ALTER ROLE ${ROLE} CREATEDB`);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain(`error: ${ROLE} may not create databases on ${new URL(server).host}`);
  expect(stderr).toContain('ALTER ROLE … CREATEDB');
});

it('without DATABASE_URL it compares on an embedded Postgres, of which nothing stays', async () => {
  const temporary = await mkdtemp(join(tmpdir(), 'postern-migration-'));
  const { code, stdout } = await generate('AddWidgets', { TMPDIR: temporary });
  expect([code, stdout]).toEqual([0, expect.stringContaining('Wrote src/migrations/')]);
  expect(await readdir(temporary)).toEqual([]);
  expect(await readdir(folder)).not.toContain('data');
  await rm(temporary, { recursive: true });
});

it.each([
  [
    'a name that is none of a class',
    ['add-widgets'],
    'add-widgets is no name of a migration; write it in PascalCase',
  ],
  ['another gateway', ['AddWidgets', '--url', 'http://127.0.0.1:9'], 'needs the sources of a project'],
])('rejects %s', async (_, args, reason) => {
  const env = { DATABASE_URL: server };
  const { code, stderr } = await runCli(['migration', 'generate', ...args], env, folder, '', MAIN);
  expect([code, stderr]).toEqual([1, expect.stringContaining(reason)]);
  expect(await databases()).toEqual([]);
});

it('says what makes a folder a project', async () => {
  await write('package.json', '{ "type": "module" }');
  const { code, stderr } = await generate('AddWidgets');
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('"postern": { "app": "./dist/app.module.js" }'),
  ]);
});
