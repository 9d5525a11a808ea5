// `npm run migration:generate -- <Name>`, `migration:revert`: TypeORM's own CLI on the data source that the application
// uses too, from the build. `migration:run`: `postern migrate`, which also applies the functions.
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { main, prepare, root, StepError } from './prepare.mjs';
import { registerMigration } from './register-migration.mjs';
import { withScratchDatabase } from './scratch-database.mjs';

const FOLDER = join(root, 'migrations');
const LIST = join('src', 'database', 'migrations.ts');
const DAY_MS = 86_400_000;

const tool = (...parts) => join(root, 'node_modules', ...parts);

function typeorm(...args) {
  const dataSource = ['-d', join(root, 'dist', 'src', 'cli', 'data-source.js')];
  return runNode([tool('typeorm', 'cli.js'), ...args, ...dataSource], { cwd: root });
}

/**
 * Writes a migration and adds it to the list. The entities are compared with what the listed migrations make, whatever
 * the gateway's own database holds: that one may not be there yet, or may be behind.
 */
async function generate(name, options) {
  const before = new Set(readdirSync(FOLDER));
  // After the others, also if one of them has a time to come: TypeORM runs them in this order.
  const last = Math.max(...[...before].map((file) => Number.parseInt(file) || 0));
  // Then by the time of day: migrations that are written side by side get times of their own.
  const now = Date.now();
  const timestamp = String(now > last ? now : last + 1_000 + (now % DAY_MS));
  const code = await withScratchDatabase((url) => {
    process.env.DATABASE_URL = url;
    const flags = ['--pretty', '--timestamp', timestamp, ...options];
    return typeorm('migration:generate', join(FOLDER, name), ...flags);
  });
  const generated = readdirSync(FOLDER).find((file) => !before.has(file));
  if (generated === undefined) return code;
  const file = `${timestamp}-${name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '-').toLowerCase()}`;
  renameSync(join(FOLDER, generated), join(FOLDER, `${file}.ts`));
  const list = registerMigration(readFileSync(join(root, LIST), 'utf8'), file, `${name}${timestamp}`);
  if (list === null) throw new StepError(`Add the class in migrations/${file}.ts to ${LIST}.`, 1);
  writeFileSync(join(root, LIST), list);
  console.log(
    `It is migrations/${file}.ts, listed in ${LIST}. Read its SQL; the next start of the gateway runs it.`,
  );
  const written = [join('migrations', `${file}.ts`), LIST];
  return runNode([tool('prettier', 'bin', 'prettier.cjs'), '--write', '--log-level=warn', ...written], {
    cwd: root,
  });
}

await main(async () => {
  const [action, name, ...rest] = process.argv.slice(2);
  if (action === 'generate') {
    if (!/^[A-Z][A-Za-z0-9]*$/.test(name ?? '')) {
      throw new StepError('Name the migration in PascalCase: npm run migration:generate -- AddKeyLabels', 1);
    }
    await prepare({ all: true });
    return generate(name, rest);
  }
  if (action !== 'run' && action !== 'revert') {
    throw new StepError('Usage: node scripts/migration.mjs generate <Name> | run | revert', 1);
  }
  await prepare();
  if (action === 'revert') return typeorm('migration:revert');
  return runNode([join(root, 'dist', 'src', 'cli', 'main.js'), 'migrate'], { cwd: root });
});
