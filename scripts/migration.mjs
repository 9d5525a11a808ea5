// `npm run migration:generate -- <Name>` and `migration:run`: what `postern migration generate` and `postern migrate` do for
// a project. `migration:revert`: TypeORM's own CLI on the data source that the application uses too. All from the build.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runNode } from './child.mjs';
import { main, prepare, root, StepError } from './prepare.mjs';
import { registerMigration } from './register-migration.mjs';

const FOLDER = join(root, 'migrations');
const LIST = join('src', 'database', 'migrations.ts');

const tool = (...parts) => join(root, 'node_modules', ...parts);

function typeorm(...args) {
  const dataSource = ['-d', join(root, 'dist', 'src', 'cli', 'data-source.js')];
  return runNode([tool('typeorm', 'cli.js'), ...args, ...dataSource], { cwd: root });
}

/** Writes a migration and adds it to the list. */
async function generate(name) {
  const load = (path) => import(pathToFileURL(join(root, 'dist', 'src', path)).href);
  await load('app.module.js');
  const { generateMigration } = await load('cli/migrations/generate-migration.js');
  const generated = await generateMigration({
    name,
    folder: FOLDER,
    features: [],
    server: process.env.TEST_DATABASE_URL || undefined,
    report: console.log,
  });
  if (generated === null) {
    console.log('No changes in database schema were found.');
    return 1;
  }
  const { file, className } = generated;
  const list = registerMigration(readFileSync(join(root, LIST), 'utf8'), file, className);
  if (list === null) throw new StepError(`Add the class in migrations/${file}.ts to ${LIST}.`, 1);
  writeFileSync(join(root, LIST), list);
  console.log(
    `It is migrations/${file}.ts, listed in ${LIST}. Read its SQL; the next start of the gateway runs it.`,
  );
  return 0;
}

await main(async () => {
  const [action, name] = process.argv.slice(2);
  if (action === 'generate') {
    if (name === undefined)
      throw new StepError('Name the migration in PascalCase: npm run migration:generate -- AddKeyLabels', 1);
    await prepare();
    return generate(name);
  }
  if (action !== 'run' && action !== 'revert') {
    throw new StepError('Usage: node scripts/migration.mjs generate <Name> | run | revert', 1);
  }
  await prepare();
  if (action === 'revert') return typeorm('migration:revert');
  return runNode([join(root, 'dist', 'src', 'cli', 'main.js'), 'migrate'], { cwd: root });
});
