#!/usr/bin/env node
// `./postern ...`, `npx postern ...`: the CLI from a checkout, in its folder, where .env and data/ are. Standard output
// belongs to the command alone, so that `./postern keys list --json` can be piped; preparations print to standard error.
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { main, prepare, root } from './prepare.mjs';

await main(async () => {
  await prepare({ quiet: true });
  return runNode([join(root, 'dist', 'src', 'cli', 'start.js'), ...process.argv.slice(2)], { cwd: root });
});
