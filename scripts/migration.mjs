// `npm run migration:generate -- <Name>`, `migration:run`, `migration:revert`: TypeORM's own CLI on the data source
// that the application uses too, from the build.
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { main, prepare, root, StepError } from './prepare.mjs';

await main(async () => {
  const [action, name, ...rest] = process.argv.slice(2);
  const typeorm = join(root, 'node_modules', 'typeorm', 'cli.js');
  const dataSource = ['-d', join(root, 'dist', 'src', 'cli', 'data-source.js')];
  const run = (args) => runNode([typeorm, ...args, ...dataSource], { cwd: root });

  if (action === 'generate') {
    if (!/^[A-Z][A-Za-z0-9]*$/.test(name ?? '')) {
      throw new StepError('Name the migration in PascalCase: npm run migration:generate -- AddKeyLabels', 1);
    }
    await prepare({ all: true });
    const code = await run(['migration:generate', join(root, 'migrations', name), '--pretty', ...rest]);
    if (code !== 0) return code;
    console.log('Next: read the SQL, and add the class to src/database/migrations.ts, which names them all.');
    const prettier = join(root, 'node_modules', 'prettier', 'bin', 'prettier.cjs');
    return runNode([prettier, '--write', '--log-level=warn', 'migrations'], { cwd: root });
  }
  if (action !== 'run' && action !== 'revert') {
    throw new StepError('Usage: node scripts/migration.mjs generate <Name> | run | revert', 1);
  }
  await prepare();
  return run([`migration:${action}`]);
});
