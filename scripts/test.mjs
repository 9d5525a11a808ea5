// `npm test`: dependencies, build (some tests run dist/), then Jest with whatever arguments were given.
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { main, prepare, root } from './prepare.mjs';

await main(async () => {
  await prepare();
  return runNode([join(root, 'node_modules', 'jest', 'bin', 'jest.js'), ...process.argv.slice(2)], {
    cwd: root,
  });
});
