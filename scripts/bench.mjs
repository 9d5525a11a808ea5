// `npm run bench`, `bench:compare`, `bench:comparison`, `bench:summary`, `bench:start`, `bench:soak`, `bench:key-flood`,
// `bench:tokens`, `bench:replicas` and `bench:fleet`:
// what has to be there, then the benchmark in a process group of its own, so that one Ctrl-C reaches it once and it can
// clean up. First argument: which.
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { compileTests } from './compile.mjs';
import { main, prepare, prepareBench, root } from './prepare.mjs';

await main(async () => {
  const [name, ...args] = process.argv.slice(2);
  await prepare();
  if (name === 'run') {
    await prepareBench();
    // For the ladder, which replaces providers by way of @nestjs/testing: not in dist/.
    await compileTests();
  }
  return runNode([join(root, 'bench', `${name}.mjs`), ...args], { cwd: root, ownGroup: true });
});
