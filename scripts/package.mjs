// `npm run package`: builds, and packs postern-<version>.tgz into the working directory. `npm pack` alone would pack what
// was built last, because .npmrc lets npm run no scripts, and the manifest of a clone.
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { pack } from './pack.mjs';
import { main, npmScript, prepare, root, StepError } from './prepare.mjs';

await main(async () => {
  await prepare({ all: true, bundled: false });
  const code = await runNode([join(root, 'scripts', 'console.mjs')], { cwd: root });
  if (code !== 0) throw new StepError('The console was not built: see the message above.', code);
  const { file, size, paths } = pack(npmScript(), process.cwd());
  console.log(`${file}: ${paths.length} files, ${Math.ceil(size / 1_000)} kB`);
  return 0;
});
