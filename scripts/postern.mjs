// `npm run postern -- ...`: the CLI from a checkout. Standard output belongs to the command alone, so that
// `npm run --silent postern -- keys list --json` can be piped; preparations speak on standard error.
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { main, prepare, root } from './prepare.mjs';

await main(async () => {
  await prepare({ quiet: true });
  return runNode([join(root, 'dist', 'src', 'cli', 'main.js'), ...process.argv.slice(2)]);
});
